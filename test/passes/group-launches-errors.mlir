// RUN: sluice-opt --sluice-group-launches=bytes=-1 --verify-diagnostics %s

// expected-error @below {{bytes=-1 is no size of a group; give 0 or more}}
module {
}
