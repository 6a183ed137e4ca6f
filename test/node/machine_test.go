//go:build node

package node

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// machine is the state of the machine that a node could change.
type machine struct {
	routes, links, groups, settings []string
}

// settings are those that the kubelet and kube-proxy try to write.
var settings = []string{
	"/proc/sys/vm/overcommit_memory", "/proc/sys/vm/panic_on_oom",
	"/proc/sys/kernel/panic", "/proc/sys/kernel/panic_on_oops",
	"/proc/sys/kernel/keys/root_maxkeys", "/proc/sys/kernel/keys/root_maxbytes",
	"/proc/sys/net/ipv4/ip_forward",
}

// ofANode matches the names of control groups that a node creates, in its own place or where its configuration
// is ignored.
var ofANode = regexp.MustCompile(`findings|kube|k8s|pod`)

func lookAtMachine() (machine, error) {
	var m machine
	routes, err := output("ip", "route")
	if err != nil {
		return m, err
	}
	m.routes = strings.Split(strings.TrimSpace(routes), "\n")
	links, err := os.ReadDir("/sys/class/net")
	if err != nil {
		return m, err
	}
	for _, link := range links {
		m.links = append(m.links, link.Name())
	}
	// A node's groups are at least this deep. Deeper ones come and go with other work on the
	// machine.
	for _, pattern := range []string{"/sys/fs/cgroup/*", "/sys/fs/cgroup/*/*"} {
		groups, err := filepath.Glob(pattern)
		if err != nil {
			return m, err
		}
		m.groups = append(m.groups, slices.DeleteFunc(groups, func(path string) bool {
			info, err := os.Stat(path)
			return err != nil || !info.IsDir() || !ofANode.MatchString(filepath.Base(path))
		})...)
	}
	for _, path := range settings {
		value, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			return m, err
		}
		m.settings = append(m.settings, path+"="+strings.TrimSpace(string(value)))
	}
	return m, nil
}
