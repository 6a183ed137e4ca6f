// A module of its own, so that no build of the operator takes it in.
module example.com/pull-request

go 1.26.0
