//go:build !attack

package attack

// full means that a test may take minutes, not seconds.
const full = false
