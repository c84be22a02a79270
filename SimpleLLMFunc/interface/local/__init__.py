"""A model inside this process: llama.cpp's server, the weights it loads, and schemas that a small model cannot run away with."""
