"""A model inside this process: llama.cpp's server, the weights it loads, and schemas that a small model cannot run away with."""

from SimpleLLMFunc.interface.local.local_model import LocalModel
from SimpleLLMFunc.interface.local.weights import KNOWN_WEIGHTS, SMOLLM2_135M, Weights, fetch_weights, find_weights

__all__ = ["KNOWN_WEIGHTS", "SMOLLM2_135M", "LocalModel", "Weights", "fetch_weights", "find_weights"]
