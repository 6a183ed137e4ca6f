package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// firstPort and lastPort bound the ports that are listened on. They lie below the range that
// systems use for outgoing connections: a client that dials the port of a stopped program must
// neither connect to itself nor occupy the port when the program starts again.
const firstPort, lastPort = 20000, 31999

// FreeAddress returns a loopback address, as host:port, that nothing listens on.
func FreeAddress(t testing.TB) string {
	t.Helper()
	addresses, err := FreeAddresses(1)
	Must(t, err)
	return addresses[0]
}

// FreeAddresses returns count different loopback addresses, as host:port, that nothing listens on.
func FreeAddresses(count int) ([]string, error) {
	var out []string
	for range 100 * count {
		if len(out) == count {
			return out, nil
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(lastPort-firstPort))) //nolint:gosec // no secret
		listener, err := net.Listen("tcp", address)                                                     //nolint:noctx // at once
		if err != nil {
			continue
		}
		// Keep the listeners open until all addresses are chosen, so that no two are the same.
		defer listener.Close() //nolint:errcheck,revive // nothing was written
		out = append(out, address)
	}
	if len(out) < count {
		return nil, fmt.Errorf("no %d ports between %d and %d are free", count, firstPort, lastPort)
	}
	return out, nil
}
