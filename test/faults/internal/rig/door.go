package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
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

	proxy  *toxiproxy.Proxy
	server string
	// Interceptor of what passes while Intercept is in force; nil for a door that has none.
	Interceptor *Interceptor
	toxics      []string
}

// NewDoor opens a door to the server at that address.
func NewDoor(name, server string) (*Door, error) {
	address, err := localAddress()
	if err != nil {
		return nil, err
	}
	host := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	d := &Door{Address: address, server: server, proxy: toxiproxy.NewProxy(host, name, address, server)}
	if err := d.proxy.Start(); err != nil {
		return nil, fmt.Errorf("open the door %s: %w", name, err)
	}
	return d, nil
}

// Close cuts what is open and lets nobody in.
func (d *Door) Close() {
	d.proxy.Stop()
	if d.Interceptor != nil {
		d.Interceptor.Close()
	}
}

// Cut ends every connection; new ones are let in.
func (d *Door) Cut() error {
	d.proxy.Stop()
	return d.proxy.Start()
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
	if _, err := d.proxy.Toxics.AddToxicJson(bytes.NewReader(content)); err != nil {
		return fmt.Errorf("add the toxic %s: %w", name, err)
	}
	d.toxics = append(d.toxics, name)
	return nil
}

// Heal takes away whatever was done to connections, and the Interceptor from the way.
func (d *Door) Heal(ctx context.Context) error {
	for _, name := range d.toxics {
		if err := d.proxy.Toxics.RemoveToxic(ctx, name); err != nil {
			return fmt.Errorf("remove the toxic %s: %w", name, err)
		}
	}
	d.toxics = nil
	if d.Interceptor == nil {
		return nil
	}
	d.Interceptor.Use(nil)
	return d.lead(d.server)
}

// Intercept leads through the Interceptor and has the rule decide on each request. Connections
// that go another way are cut.
func (d *Door) Intercept(rule Rule) error {
	d.Interceptor.Use(rule)
	return d.lead(d.Interceptor.Address)
}

func (d *Door) lead(to string) error {
	if d.proxy.Upstream == to {
		return nil
	}
	if err := d.proxy.Update(&toxiproxy.Proxy{Listen: d.proxy.Listen, Upstream: to, Enabled: true}); err != nil {
		return fmt.Errorf("lead the door to %s: %w", to, err)
	}
	return nil
}
