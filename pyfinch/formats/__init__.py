"""Level formats, format descriptors and the storage tensor."""
