// Package attack tries to break into and to disrupt the running service: the facade in a separate
// process and the controllers, on a real kube-apiserver. It counts all attempts, and at the end
// none may have succeeded. The short form is part of `make test`; the full one has the build tag
// "attack".
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

// target is the attacked deployment.
var target *deployment

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	// `go test` would cache the result, because it cannot track the attacked programs.
	if err := flag.Set("test.testlogfile", ""); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		return 1
	}
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	useOwnNames()
	var err error
	if target, err = startDeployment(); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", errors.Join(err, target.stops.Stop()))
		return 1
	}
	code := m.Run()
	if err := target.stops.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		code = 1
	}
	attacks.print(os.Stdout)
	return code
}
