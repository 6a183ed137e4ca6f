// Package tokens makes and checks the bearer tokens of the REST API: JSON Web Tokens signed
// with Ed25519, and nothing else. It is pure: it reads no clock, file or API.
//
// A signature proves only that the controllers once issued this token. Whether it is
// still valid is decided by the APIKey resource that its subject names.
package tokens
