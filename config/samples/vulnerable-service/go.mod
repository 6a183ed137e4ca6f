// A module of its own, so that no build of the operator takes it in.
module example.com/vulnerable-service

go 1.26.0
