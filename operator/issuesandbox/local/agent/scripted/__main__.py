"""Starts the program from its folder alone, where `issuesandbox` is not installed."""

import os.path
import sys
from importlib import import_module

folder = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(folder))
sys.exit(import_module(f"{os.path.basename(folder)}.program").main(sys.argv[1:]))
