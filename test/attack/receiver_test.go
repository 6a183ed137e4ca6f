package attack

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// message is a webhook as received.
type message struct{ id, payload, signature string }

// verification returns the body that asks whether the message is genuine.
func (m message) verification() string {
	return text(map[string]string{"payload": m.payload, "signature": m.signature})
}

// listen serves on that address of this machine.
func listen(t *testing.T, address string, handler http.HandlerFunc) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		needs.Missing(t, "the address %s, which all of 127.0.0.0/8 are on Linux: %v", address, err)
	}
	return harness.ServeOn(t, listener, handler)
}

// receive has one webhook sent to an allowed receiver, and returns it.
func (o *tenant) receive(t *testing.T) message {
	t.Helper()
	got := make(chan message, 1)
	var once sync.Once
	receiver := listen(t, allowedReceiver, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		once.Do(func() { got <- message{r.Header.Get("Webhook-Id"), string(body), r.Header.Get("Webhook-Signature")} })
	})
	target.env.Create(t, builder.WebhookEndpoint(o.ids["endpoint"]).In(o.namespace).URL(receiver).Events("webhook.ping").Build())
	select {
	case m := <-got:
		return m
	case <-time.After(patience):
		t.Fatal("no webhook came")
		return message{}
	}
}
