package testenv

import "sigs.k8s.io/controller-runtime/pkg/envtest"

// ControlPlane is what runs: where etcd listens, and for tests that end and start a part of it.
func (e *Environment) ControlPlane() *envtest.ControlPlane { return &e.env.ControlPlane }
