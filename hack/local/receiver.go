package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const (
	receiverName = "receiver"
	// maxReceived is larger than any payload, in bytes.
	maxReceived = 1 << 20
)

// receiver receives webhooks as a third-party program would: it checks every message with the library of Standard
// Webhooks and logs it.
type receiver struct {
	plane  client.Client
	url    string
	log    *slog.Logger
	file   *os.File
	server *http.Server
	served sync.WaitGroup
}

// startReceiver listens on a free port of the loopback address.
func startReceiver(ctx context.Context, o options, p *plane) (*receiver, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address(0))
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	// Kept across runs, like the deliveries, so that logged messages can be verified at any time.
	file, err := os.OpenFile(o.state("logs", receiverName+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the receiver's log: %w", err), listener.Close())
	}
	r := &receiver{
		plane: p.client,
		url:   "http://" + listener.Addr().String() + "/webhooks",
		log:   slog.New(slog.NewJSONHandler(file, nil)),
		file:  file,
	}
	handler := http.NewServeMux()
	handler.HandleFunc("POST /webhooks", r.receive)
	r.server = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       time.Minute,
	}
	r.served.Go(func() {
		if err := r.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			r.log.Error("the receiver has ended", "error", err)
		}
	})
	return r, nil
}

// stop ends the receiver at once: pending senders get no response and retry.
func (r *receiver) stop() error {
	err := r.server.Close()
	r.served.Wait()
	return errors.Join(err, r.file.Close())
}

func (r *receiver) receive(w http.ResponseWriter, request *http.Request) {
	payload, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxReceived))
	if err == nil {
		err = r.verify(request.Context(), payload, request.Header)
	}
	got := r.log.With(
		standardwebhooks.HeaderWebhookID, request.Header.Get(standardwebhooks.HeaderWebhookID),
		standardwebhooks.HeaderWebhookTimestamp, request.Header.Get(standardwebhooks.HeaderWebhookTimestamp),
		standardwebhooks.HeaderWebhookSignature, request.Header.Get(standardwebhooks.HeaderWebhookSignature),
		"payload", string(payload))
	if err != nil {
		got.Error("refused a webhook", "error", err)
		http.Error(w, "not verified", http.StatusUnauthorized)
		return
	}
	got.Info("received a webhook")
	w.WriteHeader(http.StatusNoContent)
}

// verify checks a message with the current secret, which may have changed since the last message.
func (r *receiver) verify(ctx context.Context, payload []byte, header http.Header) error {
	secret := &corev1.Secret{}
	// The default name of a WebhookEndpoint's secret.
	name := client.ObjectKey{Namespace: sampleNamespace, Name: receiverName + "-webhook"}
	if err := r.plane.Get(ctx, name, secret); err != nil {
		return fmt.Errorf("read the signing secret: %w", err)
	}
	webhook, err := standardwebhooks.NewWebhook(string(secret.Data[v1alpha1.WebhookSecretKey]))
	if err != nil {
		return err
	}
	return webhook.Verify(payload, header)
}

// moveEndpoint changes the endpoint of an earlier run, if there is one, to this receiver's address: the port is
// different at each start.
func (r *receiver) moveEndpoint(ctx context.Context) error {
	endpoint := newEndpoint()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"url":%q}}`, r.url))
	if err := r.plane.Patch(ctx, endpoint, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("move the webhook receiver of an earlier run: %w", err)
	}
	return nil
}

func newEndpoint() *v1alpha1.WebhookEndpoint {
	return &v1alpha1.WebhookEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: sampleNamespace, Name: receiverName}}
}

// subscribe creates the receiver's endpoint, and returns once a delivery has reached it: the ping of a new endpoint, or
// that of an earlier run.
func (r *receiver) subscribe(ctx context.Context, o options) error {
	endpoint := newEndpoint()
	endpoint.Spec.URL = r.url
	if err := r.plane.Create(ctx, endpoint); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("declare the webhook receiver: %w", err)
	}
	seen := "there is none"
	err := eventually(ctx, func(ctx context.Context) (bool, error) {
		deliveries := &v1alpha1.WebhookDeliveryList{}
		if err := r.plane.List(ctx, deliveries, client.InNamespace(sampleNamespace),
			client.MatchingFields{"spec.endpointRef.name": receiverName}); err != nil {
			return false, err
		}
		phases := make([]string, 0, len(deliveries.Items))
		for i := range deliveries.Items {
			phase := deliveries.Items[i].Status.Phase
			if phase == v1alpha1.WebhookDeliveryDelivered {
				return true, nil
			}
			phases = append(phases, string(phase))
		}
		seen = strings.Join(phases, ", ")
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for a webhook delivery (phases: %s; logs: %s, %s): %w", seen,
			o.state("logs", "controller.log"), r.file.Name(), err)
	}
	return nil
}
