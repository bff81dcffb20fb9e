"""The engine room: captioners, columns, metrics. Imports of ours: service.contract only."""
