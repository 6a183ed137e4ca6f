package admission_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// The facade checks the keys' own rights; this file checks what the facade itself may do.

func TestTheFacadeMakesPoliciesForKeysAndChangesTheirModeAlone(t *testing.T) {
	g, c := NewWithT(t), newCast(t, "policies-facade")
	for _, as := range []client.Client{c.as(facade), almightyFacade(t)} {
		for by, taken := range map[string]bool{"apikey/ci": true, "ann": false, "": false, "policy/p": false, "apikey/": false} {
			policy := builder.TriagePolicy("made", "true").In(c.namespace).Spec(func(s *v1alpha1.TriagePolicySpec) { s.By = by }).Build()
			err := as.Create(t.Context(), policy, client.DryRunAll)
			if taken {
				g.Expect(err).NotTo(HaveOccurred(), by)
				g.Expect(policy.Spec.By).To(Equal(by), "the key's name is replaced")
				continue
			}
			wantRefusal(t, by, err, "spec.by must be")
		}
	}
	policy := builder.TriagePolicy("p", "true").In(c.namespace).Build()
	harness.Must(t, c.as(triager).Create(t.Context(), policy))
	patch := func(patch string) error {
		return almightyFacade(t).Patch(t.Context(), policy.DeepCopy(), testenv.MergePatch(patch))
	}
	for change, message := range map[string]string{
		`"mode":"Preview"`:                                       "spec.by must be", // in the name of whoever wrote it before
		`"mode":"Preview","by":"ann"`:                            "spec.by must be",
		`"by":"apikey/ci"`:                                       "spec.by must be",
		`"match":"false","by":"apikey/ci"`:                       "may change only the mode",
		`"priority":7,"by":"apikey/ci"`:                          "may change only the mode",
		`"maxFindings":7,"by":"apikey/ci"`:                       "may change only the mode",
		`"validFrom":"2026-01-01T00:00:00Z","by":"apikey/ci"`:    "may change only the mode",
		`"validUntil":"2036-01-01T00:00:00Z","by":"apikey/ci"`:   "may change only the mode",
		`"set":{"comment":"x"},"mode":"Preview","by":"apikey/c"`: "may change only the mode",
	} {
		wantRefusal(t, change, patch(`{"spec":{`+change+`}}`), message)
	}
	wantRefusal(t, "a label", patch(`{"metadata":{"labels":{"a":"b"}}}`), "may change no labels")
	wantRefusal(t, "a delivery's annotation", patch(`{"metadata":{"annotations":{"appsec.dev/redeliver":"apikey/ci/a"}}}`), "may change no labels")
	harness.Must(t, patch(`{"spec":{"mode":"Preview","by":"apikey/ci"}}`))
	wantRefusal(t, "the facade deletes policies", c.as(facade).Delete(t.Context(), policy))
}

func TestTheFacadeHasDeliveriesSentAgainAndChangesNothingElseOfThem(t *testing.T) {
	g, c := NewWithT(t), newCast(t, "deliveries-facade")
	delivery := builder.WebhookDelivery("d", start).Endpoint("absent").In(c.namespace).Build()
	delivery.Annotations = map[string]string{"kept": "as it is"}
	harness.Must(t, c.as(admin).Create(t.Context(), delivery))
	for patch, taken := range map[string]bool{
		`{"annotations":{"appsec.dev/redeliver":"apikey/ci/abc1"}}`:                true,
		`{"annotations":{"appsec.dev/redeliver":"apikey/ci.2/abc2"}}`:              true,
		`{"annotations":{"appsec.dev/redeliver":"1"}}`:                             false, // names no user
		`{"annotations":{"appsec.dev/redeliver":"ann/abc"}}`:                       false,
		`{"annotations":{"appsec.dev/redeliver":"apikey//abc"}}`:                   false,
		`{"annotations":{"other":"apikey/ci/abc"}}`:                                false,
		`{"annotations":{"kept":null}}`:                                            false,
		`{"annotations":{"kept":"changed"}}`:                                       false,
		`{"annotations":{"appsec.dev/redeliver":"apikey/ci/abc3","kept":"other"}}`: false,
		`{"labels":{"a":"b"}}`:                                                     false,
		`{"finalizers":["a.dev/b"]}`:                                               false,
	} {
		for name, as := range map[string]client.Client{"as it is": c.as(facade), "with every right": almightyFacade(t)} {
			if !taken && name == "with every right" && patch == `{"finalizers":["a.dev/b"]}` {
				continue // which requires a separate right
			}
			err := as.Patch(t.Context(), delivery.DeepCopy(), testenv.MergePatch(`{"metadata":`+patch+`}`))
			if taken {
				g.Expect(err).NotTo(HaveOccurred(), patch)
				continue
			}
			wantRefusal(t, name+": "+patch, err)
		}
	}
	finding := applied(t, builder.Finding("f").In(c.namespace).Build())
	err := sendMergePatch(t, c.as(facade), finding, metadata(map[string]any{"annotations": map[string]any{"appsec.dev/redeliver": "apikey/ci/a"}}), "")
	wantRefusal(t, "the annotation belongs to deliveries alone", err)
	err = c.as(facade).Patch(t.Context(), delivery.DeepCopy(), testenv.MergePatch(`{"spec":{"payload":"{}{}"}}`))
	g.Expect(err).To(MatchError(ContainSubstring("immutable")))
	wantRefusal(t, "the facade deletes deliveries", c.as(facade).Delete(t.Context(), delivery))
}

// The delivery shows the value as who had it sent again, so nobody may blame a key.
func TestOnlyTheFacadeHasDeliveriesSentAgainForAKey(t *testing.T) {
	c := newCast(t, "deliveries-key")
	ask := func(as client.Client, delivery *v1alpha1.WebhookDelivery, value string) error {
		return as.Patch(t.Context(), delivery.DeepCopy(), testenv.MergePatch(`{"metadata":{"annotations":{"appsec.dev/redeliver":`+value+`}}}`))
	}
	signed := builder.WebhookDelivery("signed", start).Endpoint("absent").In(c.namespace).Build()
	signed.Annotations = map[string]string{v1alpha1.RedeliverAnnotation: "apikey/ci/abc"} // as a backup holds it
	harness.Must(t, c.as(admin).Create(t.Context(), signed))
	plain := builder.WebhookDelivery("plain", start).Endpoint("absent").In(c.namespace).Build()
	harness.Must(t, c.as(admin).Create(t.Context(), plain))
	for _, name := range []who{triager, editor, admin} {
		for _, value := range []string{`"apikey/ci/abc"`, `"apikey/"`} {
			wantRefusal(t, string(name)+": "+value, ask(c.as(name), plain, value), "only the REST facade")
		}
		harness.Must(t, ask(c.as(name), plain, `"2026-01-02T03:04:05Z `+string(name)+`"`))
		harness.Must(t, ask(c.as(name), signed, `"apikey/ci/abc"`)) // as it is
	}
	harness.Must(t, ask(c.as(triager), signed, "null"))
}
