package attack

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// ownZone is the zone whose names are answered here, in place of the machine's resolver.
const ownZone = ".attack.test."

// names holds the names of the zone. A name may have several turns: each query is answered with the
// next turn, and the last turn is repeated.
var names = struct {
	sync.Mutex
	turns map[string][][]netip.Addr
}{turns: map[string][][]netip.Addr{}}

// resolves makes a name resolve to those addresses, turn by turn, and returns it without the
// trailing dot.
func resolves(name string, turns ...[]netip.Addr) string {
	names.Lock()
	defer names.Unlock()
	names.turns[name+ownZone] = turns
	return strings.TrimSuffix(name+ownZone, ".")
}

func addresses(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

// useOwnNames makes a DNS server in this process answer all lookups of the process, except for
// names in the hosts file. The controllers run here, and nothing else needs a name.
func useOwnNames() {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0") //nolint:noctx // as long as the process
	if err != nil {
		panic(err) // the loopback interface always has a free port
	}
	go serveNames(conn)
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func serveNames(conn net.PacketConn) {
	packet := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(packet)
		if err != nil {
			return
		}
		if reply, err := answerQuestion(packet[:n]); err == nil {
			_, _ = conn.WriteTo(reply, from) // the resolver retries
		}
	}
}

func answerQuestion(packet []byte) ([]byte, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(packet)
	if err != nil {
		return nil, err
	}
	question, err := parser.Question()
	if err != nil {
		return nil, err
	}
	found, known := meaning(question)
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true, RecursionAvailable: true, RecursionDesired: header.RecursionDesired},
		Questions: []dnsmessage.Question{question},
	}
	if !known {
		reply.RCode = dnsmessage.RCodeNameError
	}
	for _, address := range found {
		resource := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET}}
		switch {
		case address.Is4() && question.Type == dnsmessage.TypeA:
			resource.Header.Type, resource.Body = question.Type, &dnsmessage.AResource{A: address.As4()}
		case address.Is6() && question.Type == dnsmessage.TypeAAAA:
			resource.Header.Type, resource.Body = question.Type, &dnsmessage.AAAAResource{AAAA: address.As16()}
		default:
			continue
		}
		reply.Answers = append(reply.Answers, resource)
	}
	return reply.Pack()
}

// meaning takes the next turn of a name for each IPv4 query.
func meaning(question dnsmessage.Question) ([]netip.Addr, bool) {
	names.Lock()
	defer names.Unlock()
	name := strings.ToLower(question.Name.String())
	turns, known := names.turns[name]
	if !known {
		return nil, false
	}
	if len(turns) > 1 && question.Type == dnsmessage.TypeA {
		names.turns[name] = turns[1:]
	}
	return turns[0], true
}
