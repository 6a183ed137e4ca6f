//go:build attack

package attack

import "testing"

// full means that a test may take minutes, not seconds.
const full = true

// Bodies that arrive slowly are cut off at the timeout of the whole request.
func TestInput_SlowBodiesAreCutOff(t *testing.T) {
	o := tenants(t)[0]
	cutOff(t, "slow bodies", "PATCH /v2/findings/"+o.ids["finding"]+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer "+o.token+
		"\r\nContent-Length: 60000\r\n\r\n{\"comments\":\"", perConnection+64<<10)
}
