// Holds the precompiled header; see Precompiled.h.
