//go:build attack

package attack

// full says that there are minutes and not seconds.
const full = true
