package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Streams of a connection, as toxiproxy names them.
const (
	toServer = "upstream"
	toClient = "downstream"
)

// Door is what a program reaches a server through: a proxy that can slow, starve, cut and
// swallow what passes. It may lead through an Interceptor, which answers in the server's place.
type Door struct {
	// Address that the program is given.
	Address string
	// Interceptor of what passes while Intercept is in force; nil for a door that has none.
	Interceptor *Interceptor

	server   string
	listener net.Listener

	mutex sync.Mutex
	// way is where new connections go; those of dead ones go nowhere.
	way  *toxiproxy.Proxy
	dead []*toxiproxy.Proxy
	// to is where the way leads.
	to     string
	toxics []string
}

// NewDoor opens a door to the server at that address.
func NewDoor(name, server string) (*Door, error) {
	addresses, err := harness.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	d := &Door{Address: addresses[0], server: server}
	if err := d.lead(server); err != nil {
		return nil, fmt.Errorf("open the door %s: %w", name, err)
	}
	if d.listener, err = new(net.ListenConfig).Listen(context.Background(), "tcp", d.Address); err != nil {
		d.way.Stop()
		return nil, fmt.Errorf("open the door %s: %w", name, err)
	}
	go d.accept()
	return d, nil
}

// accept lets connections in until the door is closed.
func (d *Door) accept() {
	for {
		client, err := d.listener.Accept()
		if err != nil {
			return
		}
		d.mutex.Lock()
		to := d.way.Listen
		d.mutex.Unlock()
		server, err := net.Dial("tcp", to) //nolint:noctx // on this machine, at once
		if err != nil {
			_ = client.Close() // nobody is there
			continue
		}
		go splice(client.(*net.TCPConn), server.(*net.TCPConn))
	}
}

// splice joins two connections. What ends or resets one does so to the other.
func splice(a, b *net.TCPConn) {
	var both sync.WaitGroup
	one := func(from, to *net.TCPConn) {
		if _, err := io.Copy(to, from); err != nil {
			_ = to.SetLinger(0) // it may be closed
			_ = to.Close()
			_ = from.Close()
			return
		}
		_ = to.CloseWrite()
	}
	both.Go(func() { one(a, b) })
	both.Go(func() { one(b, a) })
	both.Wait()
	_ = a.Close()
	_ = b.Close()
}

// Close cuts what is open and lets nobody in.
func (d *Door) Close() {
	if d.listener != nil {
		_ = d.listener.Close() // once is enough
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, p := range append(d.dead, d.way) {
		p.Stop()
	}
	if d.Interceptor != nil {
		d.Interceptor.Close()
	}
}

// Cut ends every connection; new ones are let in.
func (d *Door) Cut() error { return d.lead(d.to) }

// Die has every open connection swallow everything from here on, as where something on the way
// has forgotten them; new ones are let in.
func (d *Door) Die() error {
	if err := d.BlackHole(); err != nil {
		return err
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.dead = append(d.dead, d.way)
	d.toxics = nil
	var err error
	d.way, err = newWay(d.to)
	return err
}

// BlackHole swallows everything in both directions: connections stay and nobody answers.
func (d *Door) BlackHole() error {
	return d.both("timeout", map[string]any{"timeout": 0})
}

// Reset resets each connection once something passes.
func (d *Door) Reset() error {
	return d.add("reset_peer", toClient, map[string]any{"timeout": 0})
}

// Slow delays everything in both directions, in milliseconds.
func (d *Door) Slow(latency, jitter int) error {
	return d.both("latency", map[string]any{"latency": latency, "jitter": jitter})
}

// Drip lets through what the server sends in pieces of some bytes, with microseconds between.
func (d *Door) Drip(size, delay int) error {
	return d.add("slicer", toClient, map[string]any{"average_size": size, "size_variation": size / 2, "delay": delay})
}

func (d *Door) both(kind string, attributes map[string]any) error {
	if err := d.add(kind, toServer, attributes); err != nil {
		return err
	}
	return d.add(kind, toClient, attributes)
}

func (d *Door) add(kind, stream string, attributes map[string]any) error {
	name := kind + "-" + stream
	content, err := json.Marshal(map[string]any{"name": name, "type": kind, "stream": stream, "attributes": attributes})
	if err != nil {
		return err
	}
	if _, err := d.way.Toxics.AddToxicJson(bytes.NewReader(content)); err != nil {
		return fmt.Errorf("add the toxic %s: %w", name, err)
	}
	d.toxics = append(d.toxics, name)
	return nil
}

// Heal takes away whatever was done to connections, and the Interceptor from the way. Those that
// have died stay dead.
func (d *Door) Heal(ctx context.Context) error {
	for _, name := range d.toxics {
		if err := d.way.Toxics.RemoveToxic(ctx, name); err != nil {
			return fmt.Errorf("remove the toxic %s: %w", name, err)
		}
	}
	d.toxics = nil
	if d.Interceptor == nil || d.to == d.server {
		return nil
	}
	d.Interceptor.Use(nil)
	return d.lead(d.server)
}

// Intercept leads through the Interceptor and has the rule decide on each request. What is open is cut.
func (d *Door) Intercept(rule Rule) error {
	d.Interceptor.Use(rule)
	return d.lead(d.Interceptor.Address)
}

// lead has new connections go there, and cuts those that go another way.
func (d *Door) lead(to string) error {
	way, err := newWay(to)
	if err != nil {
		return fmt.Errorf("lead to %s: %w", to, err)
	}
	d.mutex.Lock()
	old := d.way
	d.way, d.to = way, to
	d.mutex.Unlock()
	if old != nil {
		old.Stop()
	}
	return nil
}

func newWay(to string) (*toxiproxy.Proxy, error) {
	host := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(host, "way", "127.0.0.1:0", to)
	return p, p.Start()
}
