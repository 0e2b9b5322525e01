"""Pictures: recorded graphs, profiles and checks as pages, and `ad.plot`."""
