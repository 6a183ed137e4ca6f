package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// firstPort and lastPort bound the ports that are listened on. They lie below the range that
// systems use for outgoing connections: a client that dials the port of a stopped program must
// neither connect to itself nor occupy the port when the program starts again.
const firstPort, lastPort = 20000, 31999

// blockSize is how many ports a test process claims at a time.
const blockSize = 50

// own are the ports of this process.
var own ports

// ports gives no port away twice, whether to this process or, as packages are tested side by side, to another one: a
// program may start to listen long after it got its address.
type ports struct {
	sync.Mutex
	// claims are listeners on the first port of each claimed block. They stay open until the process ends, and keep
	// other processes from claiming the same blocks.
	claims []net.Listener
	// next is the next port to give away, and end the one after the last of the newest block.
	next, end int
}

// FreeAddress returns a loopback address, as host:port, that nothing listens on.
func FreeAddress(t testing.TB) string {
	t.Helper()
	addresses, err := FreeAddresses(1)
	Must(t, err)
	return addresses[0]
}

// FreeAddresses returns count loopback addresses, as host:port, that nothing listens on. It returns none of them
// again.
func FreeAddresses(count int) ([]string, error) {
	own.Lock()
	defer own.Unlock()
	var out []string
	for len(out) < count {
		if own.next == own.end {
			if err := own.claim(rand.Perm((lastPort + 1 - firstPort) / blockSize)); err != nil {
				return nil, err
			}
		}
		listener, err := listenOn(own.next)
		own.next++
		if err != nil {
			continue // something else listens there
		}
		out = append(out, listener.Addr().String())
		if err := listener.Close(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// claim makes the ports of the first of the blocks that no other process has claimed the next ones to give away.
func (p *ports) claim(blocks []int) error {
	for _, block := range blocks {
		first := firstPort + block*blockSize
		listener, err := listenOn(first)
		if err != nil {
			continue
		}
		p.claims = append(p.claims, listener)
		p.next, p.end = first+1, first+blockSize
		return nil
	}
	return fmt.Errorf("no block of %d ports between %d and %d is free", blockSize, firstPort, lastPort)
}

func listenOn(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // at once
}
