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

// The streams of a connection, as toxiproxy names them.
const (
	toServer = "upstream"
	toClient = "downstream"
)

// Door is a proxy through which a program reaches the API server. It can slow, starve, cut and drop
// traffic, and may lead through an Interceptor, which answers in the server's place.
type Door struct {
	// Address is the address that the program is given.
	Address string
	// Interceptor handles requests while Intercept is in force.
	Interceptor *Interceptor

	server   string
	listener net.Listener

	mutex sync.Mutex
	// way receives new connections; dead holds the proxies of dead connections.
	way  *toxiproxy.Proxy
	dead []*toxiproxy.Proxy
	// to is the target of the way.
	to     string
	toxics []string
}

// openDoor opens a door to the control plane's API server. What is open after an error ends with the run.
func openDoor(name string, p *harness.ControlPlane) (*Door, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the door %s: %w", name, err)
	}
	d := &Door{Address: listener.Addr().String(), server: p.APIServerAddress, listener: listener}
	if d.Interceptor, err = intercept(p); err != nil {
		return nil, fmt.Errorf("open the door %s: %w", name, err)
	}
	if err := d.lead(d.server); err != nil {
		return nil, fmt.Errorf("open the door %s: %w", name, err)
	}
	go d.accept()
	return d, nil
}

// accept accepts connections until the door is closed.
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
			_ = client.Close() // nothing listens there
			continue
		}
		go splice(client.(*net.TCPConn), server.(*net.TCPConn))
	}
}

// splice joins two connections. If one is closed or reset, so is the other.
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

// Close cuts open connections and accepts no more.
func (d *Door) Close() {
	_ = d.listener.Close() // once is enough
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, p := range append(d.dead, d.way) {
		p.Stop()
	}
	d.Interceptor.Close()
}

// Cut cuts every open connection and accepts new ones.
func (d *Door) Cut() error { return d.lead(d.to) }

// Die drops all further traffic of open connections, as if a middlebox had forgotten them, and
// accepts new ones.
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

// BlackHole drops all traffic in both directions: connections stay open, but nothing answers.
func (d *Door) BlackHole() error {
	return d.both("timeout", map[string]any{"timeout": 0})
}

// Reset resets each connection when the server sends data.
func (d *Door) Reset() error {
	return d.add("reset_peer", toClient, map[string]any{"timeout": 0})
}

// Slow delays all traffic in both directions, in milliseconds.
func (d *Door) Slow(latency, jitter int) error {
	return d.both("latency", map[string]any{"latency": latency, "jitter": jitter})
}

// Drip forwards the server's data in pieces of about size bytes, with delay microseconds between
// them.
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

// Heal removes all faults from connections and bypasses the Interceptor. Dead connections stay
// dead.
func (d *Door) Heal(ctx context.Context) error {
	for _, name := range d.toxics {
		if err := d.way.Toxics.RemoveToxic(ctx, name); err != nil {
			return fmt.Errorf("remove the toxic %s: %w", name, err)
		}
	}
	d.toxics = nil
	if d.to == d.server {
		return nil
	}
	d.Interceptor.Use(nil)
	return d.lead(d.server)
}

// Intercept leads through the Interceptor and lets the rule decide on each request. It cuts open
// connections.
func (d *Door) Intercept(rule Rule) error {
	d.Interceptor.Use(rule)
	return d.lead(d.Interceptor.Address)
}

// lead directs new connections to that address, and cuts the others.
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
