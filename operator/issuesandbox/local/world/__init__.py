"""The whole world on one machine: API server, simulators, operator, and the story they tell."""
