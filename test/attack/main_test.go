// Package attack tries to break into and to break the running service: the facade in a process
// of its own and the controllers, on a real kube-apiserver. Whatever is tried is counted, and at
// the end there must be nothing that passed through. The short form is part of `make test`, the
// full one has the build tag "attack".
package attack

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// target is what is attacked.
var target *deployment

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	// `go test` would keep a result although what is attacked lies outside of its sight.
	if err := flag.Set("test.testlogfile", ""); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		return 1
	}
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	useOwnNames()
	var err error
	if target, err = startDeployment(); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", errors.Join(err, target.stop()))
		return 1
	}
	code := m.Run()
	if err := target.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		code = 1
	}
	attacks.print(os.Stdout)
	return code
}
