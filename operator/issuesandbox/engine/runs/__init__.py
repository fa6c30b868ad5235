"""The run driver: carries out what `domain.runs` decides, one small errand after the other."""
