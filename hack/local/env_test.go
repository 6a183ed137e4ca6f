package main

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAShellReadsTheEnvironmentFileAsItIsMeant(t *testing.T) {
	g := NewWithT(t)
	o := newRunFolder(t)
	o.runDir += "/it's a $(folder)"
	g.Expect(os.Mkdir(o.runDir, 0o700)).To(Succeed())
	g.Expect(writeEnvironment(o, "http://127.0.0.1:8080", "a.b-c_d")).To(Succeed())

	out, err := output(t.Context(), o.root, "/bin/sh", "-c", `. "$0" && printf '%s\n' "$FINDINGS_URL" "$FINDINGS_API_KEY" "$FINDINGS_NAMESPACE" "$KUBECONFIG"`, o.state("env"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Split(strings.TrimSpace(out), "\n")).To(Equal([]string{
		"http://127.0.0.1:8080", "a.b-c_d", "org-sample", o.state("kubeconfig"),
	}))
	info, err := os.Stat(o.state("env"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
}

func TestWithoutSamplesThereIsNoKeyLine(t *testing.T) {
	g := NewWithT(t)
	o := newRunFolder(t)
	g.Expect(writeEnvironment(o, "http://127.0.0.1:8080", "")).To(Succeed())
	content, err := os.ReadFile(o.state("env"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).NotTo(ContainSubstring("FINDINGS_API_KEY"))
}

func TestKeysOutliveARestart(t *testing.T) {
	g := NewWithT(t)
	o := newRunFolder(t)
	before, err := loadPKI(o)
	g.Expect(err).NotTo(HaveOccurred())
	after, err := loadPKI(o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after).To(Equal(before))
}
