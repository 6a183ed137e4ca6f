package tokens

import (
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"k8s.io/apimachinery/pkg/types"
)

// Issuer is the iss claim of every token.
const Issuer = "findings-operator"

// Claims are the claims of a token.
type Claims struct {
	// KeyUID is the UID of the APIKey that the token belongs to (sub).
	KeyUID types.UID
	// Organization is the name of the organization that the token was issued for (org).
	Organization string
	// ID identifies this token among all that its APIKey ever had (jti).
	ID string
	// IssuedAt is when the token was issued (iat). The resolution is a second.
	IssuedAt time.Time
	// ExpiresAt is the first instant at which the token is no longer valid (exp). The
	// resolution is a second.
	ExpiresAt time.Time
}

// ExpiredAt reports whether the token has expired at that time.
func (c Claims) ExpiredAt(now time.Time) bool { return !now.Before(c.ExpiresAt) }

// wireClaims is the JSON form.
type wireClaims struct {
	Organization string `json:"org"`
	jwt.RegisteredClaims
}

func (c Claims) toWire() wireClaims {
	return wireClaims{
		Organization: c.Organization,
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    Issuer,
			Subject:   string(c.KeyUID),
			ID:        c.ID,
			IssuedAt:  jwt.NewNumericDate(c.IssuedAt),
			ExpiresAt: jwt.NewNumericDate(c.ExpiresAt),
		},
	}
}

func (w wireClaims) fromWire() (Claims, error) {
	if w.IssuedAt == nil || w.ExpiresAt == nil {
		return Claims{}, fmt.Errorf("%w: iat and exp are required", ErrClaims)
	}
	c := Claims{
		KeyUID:       types.UID(w.Subject),
		Organization: w.Organization,
		ID:           w.ID,
		IssuedAt:     w.IssuedAt.UTC(),
		ExpiresAt:    w.ExpiresAt.UTC(),
	}
	return c, c.validate()
}

func (c Claims) validate() error {
	switch {
	case c.KeyUID == "":
		return fmt.Errorf("%w: sub is required", ErrClaims)
	case c.Organization == "":
		return fmt.Errorf("%w: org is required", ErrClaims)
	case c.ID == "":
		return fmt.Errorf("%w: jti is required", ErrClaims)
	case !c.ExpiresAt.After(c.IssuedAt):
		return fmt.Errorf("%w: exp must be later than iat", ErrClaims)
	}
	return nil
}
