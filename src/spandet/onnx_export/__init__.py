"""Export of trained models to ONNX, behind gates: nothing that differs from torch gets out."""

from spandet.onnx_export.errors import ExportError
from spandet.onnx_export.report import ExportReport
from spandet.onnx_export.run import ExportOptions, export

__all__ = ["ExportError", "ExportOptions", "ExportReport", "export"]
