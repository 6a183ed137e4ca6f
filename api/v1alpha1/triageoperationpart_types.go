package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bounds of a TriageOperationPart.
const (
	// MaxPartEntries is the maximum number of findings in a part.
	MaxPartEntries = 500
	// MaxPartLength is the maximum length of the entries in characters.
	MaxPartLength = 150000
)

// TriageOperationPartSpec holds some of an operation's findings.
type TriageOperationPartSpec struct {
	// operation is the name of the TriageOperation.
	// +required
	Operation ResourceName `json:"operation"`
	// index of the part, from 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	// +required
	Index int32 `json:"index"`
	// count of the findings in the part.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=500
	// +required
	Count int32 `json:"count"`
	// entries are the findings with their previous decisions, one line of JSON per finding, compressed by gzip, in
	// base64: `kubectl get top-part NAME -o jsonpath={.spec.entries} | base64 -d | gunzip` shows them.
	// +kubebuilder:validation:MaxLength=150000
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9+/]*={0,2}$`
	// +required
	Entries string `json:"entries"`
	// begun is true once the operation may have written decisions of this part. Only then, after an interruption, does a
	// finding's history show what the operation has decided: before, it can name only an earlier one of the same name.
	// +optional
	Begun bool `json:"begun,omitempty"`
	// outcomes has one letter per finding, in the order of the entries: c changed, u unchanged, x conflicted, f
	// failed. Absent until the part is finished.
	// +kubebuilder:validation:MaxLength=500
	// +kubebuilder:validation:Pattern=`^[a-z]*$`
	// +optional
	Outcomes string `json:"outcomes,omitempty"`
}

// TriageOperationPart holds some of the findings of a TriageOperation, with what an undo needs. The controllers write
// it, and it is removed with the operation.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=triageoperationparts,scope=Namespaced,shortName=top-part
// +kubebuilder:printcolumn:name="Operation",type=string,JSONPath=`.spec.operation`
// +kubebuilder:printcolumn:name="Index",type=integer,JSONPath=`.spec.index`
// +kubebuilder:printcolumn:name="Findings",type=integer,JSONPath=`.spec.count`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.spec.operation`
type TriageOperationPart struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec holds the findings. Only the controllers write it.
	// +required
	Spec TriageOperationPartSpec `json:"spec"`
}

// TriageOperationPartList is a list of TriageOperationParts.
//
// +kubebuilder:object:root=true
type TriageOperationPartList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TriageOperationPart `json:"items"`
}
