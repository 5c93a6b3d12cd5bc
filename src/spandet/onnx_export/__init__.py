"""Export of trained models to ONNX; an export that differs from torch is not written."""

from spandet.onnx_export.folders import ExportError
from spandet.onnx_export.report import ExportReport
from spandet.onnx_export.run import ExportOptions, export

__all__ = ["ExportError", "ExportOptions", "ExportReport", "export"]
