package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// healthcheckInterval is the pause between attempts.
	healthcheckInterval = time.Second
	// healthcheckRequestTimeout bounds one request.
	healthcheckRequestTimeout = 5 * time.Second
)

// healthcheckOptions are the flags of `findings-operator healthcheck`.
type healthcheckOptions struct {
	timeout  time.Duration
	insecure bool
}

func newHealthcheckCommand() *cobra.Command {
	o := &healthcheckOptions{}
	command := &cobra.Command{
		Use:   "healthcheck URL[=CODE] ...",
		Short: "Wait until addresses answer with a status code",
		Long: `Wait until each URL answers with the given status code; default: 200.

The image holds only this binary, no shell and no curl: the chart's test and your own probes
can use this command.`,
		Example: `  # The REST API answers, and refuses requests without a key
  findings-operator healthcheck http://findings-api/v1/findings=401

  # The same with a query
  findings-operator healthcheck "http://findings-api/v1/findings?size=100=401"`,
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) == 0 {
				return errors.New("give at least one URL, such as http://findings-api/v1/findings=401")
			}
			return nil
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			return o.run(command.Context(), arguments)
		},
	}
	command.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait")
	command.Flags().BoolVar(&o.insecure, "insecure-skip-tls-verify", false, "accept any certificate")
	return command
}

// healthTarget is an address and the status code that it must return.
type healthTarget struct {
	url  string
	code int
}

func (o *healthcheckOptions) run(ctx context.Context, arguments []string) error {
	var targets []healthTarget
	for _, argument := range arguments {
		target, err := parseHealthTarget(argument)
		if err != nil {
			return err
		}
		targets = append(targets, target)
	}
	client := &http.Client{
		Timeout: healthcheckRequestTimeout,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: o.insecure}, //nolint:gosec // only where asked for, and nothing secret is sent
			DisableKeepAlives: true,                                        // each attempt connects anew
		},
		// Do not follow redirects: only the given address is checked.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, target := range targets {
		group.Go(func() error { return target.await(ctx, client) })
	}
	return group.Wait()
}

func parseHealthTarget(argument string) (healthTarget, error) {
	target := healthTarget{url: argument, code: http.StatusOK}
	// A query may contain the sign, too, so only a valid status code counts there, not the value of a parameter.
	if at := strings.LastIndex(argument, "="); at >= 0 && !endsInParameter(argument[:at]) {
		last := argument[at+1:]
		switch code, err := strconv.Atoi(last); {
		case err == nil && code >= 100 && code < 600:
			target = healthTarget{url: argument[:at], code: code}
		case last != "" && strings.Trim(last, "0123456789") == "" && !strings.Contains(argument, "?"):
			return healthTarget{}, fmt.Errorf("%s: %q is not a status code from 100 to 599", argument, last)
		}
	}
	parsed, err := url.Parse(target.url)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return healthTarget{}, fmt.Errorf("%q is not a URL such as http://findings-api/v1/findings=401", argument)
	}
	return target, nil
}

// endsInParameter reports whether a URL ends with the name of a parameter, to which a sign behind it belongs.
func endsInParameter(address string) bool {
	_, query, found := strings.Cut(address, "?")
	return found && !strings.Contains(query[strings.LastIndex(query, "&")+1:], "=")
}

// await polls until the response is as expected; on a timeout it returns the last error.
func (t healthTarget) await(ctx context.Context, client *http.Client) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, healthcheckInterval, true, func(ctx context.Context) (bool, error) {
		if err := t.ask(ctx, client); err != nil {
			// The timeout itself is no information about the address.
			if ctx.Err() == nil || last == nil {
				last = err
			}
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("wait for %s: %w", t.url, err), last)
	}
	return nil
}

func (t healthTarget) ask(ctx context.Context, client *http.Client) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != t.code {
		return fmt.Errorf("%s returned %d, want %d", t.url, response.StatusCode, t.code)
	}
	return nil
}
