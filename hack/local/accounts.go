package main

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// accountTokenLife is longer than any run: each start requests a new token.
const accountTokenLife = 365 * 24 * time.Hour

// account returns a config with a token of the service account.
func (p *plane) account(ctx context.Context, namespace, name string) (*rest.Config, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(accountTokenLife / time.Second)),
	}}
	if err := p.client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("request a token of service account %s/%s: %w", namespace, name, err)
	}
	return p.as(request.Status.Token), nil
}
