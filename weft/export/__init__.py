"""Export a trained run to other programs: ONNX, the browser, transformers, CTranslate2, Argos Translate.

Each format is one file in formats/. Read next: format.py, the contract and what formats share.
"""
