package rig

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// firstPort and lastPort bound the ports that are listened on. They lie below those that systems
// give to outgoing connections: whoever dials the port of a program that is down must neither
// find itself there nor keep the program from coming back.
const firstPort, lastPort = 20000, 31999

// localAddress is a loopback address that nothing listens on.
func localAddress() (string, error) {
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(lastPort-firstPort))) //nolint:gosec // no secret
		listener, err := net.Listen("tcp", address)                                                     //nolint:noctx // at once
		if err != nil {
			continue
		}
		return address, listener.Close()
	}
	return "", fmt.Errorf("no port between %d and %d is free", firstPort, lastPort)
}

// localAddresses are that many, each once.
func localAddresses(count int) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	for len(out) < count {
		address, err := localAddress()
		if err != nil {
			return nil, err
		}
		if !seen[address] {
			seen[address] = true
			out = append(out, address)
		}
	}
	return out, nil
}
