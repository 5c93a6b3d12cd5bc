"""Export of trained models to ONNX, behind gates: nothing that differs from torch gets out."""

from spandet.exporting.errors import ExportError
from spandet.exporting.report import ExportReport
from spandet.exporting.run import ExportOptions, export

__all__ = ["ExportError", "ExportOptions", "ExportReport", "export"]
