"""The local world (extra `local`): control plane, simulators and scripted agent on one machine."""
