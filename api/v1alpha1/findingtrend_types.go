package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bounds of a FindingTrend.
const (
	// MaxTrendDays is the maximum number of rows in a FindingTrend: the days of the longest quarter.
	MaxTrendDays = 92
	// MaxTrendSample is the maximum number of values in a spread's sample.
	MaxTrendSample = 10
	// TrendYears is the number of years for which the controllers keep a FindingTrend after its quarter.
	TrendYears = 2
)

// Quarter is a quarter of a year in UTC, for example "2026q4".
//
// +kubebuilder:validation:MaxLength=6
// +kubebuilder:validation:Pattern=`^[0-9]{4}q[1-4]$`
type Quarter string

// Day is a day in UTC, for example "2026-11-23".
//
// +kubebuilder:validation:MaxLength=10
// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`
type Day string

// FindingTrendSpec holds a row for each day of a quarter on which a project's findings changed.
//
// +kubebuilder:validation:XValidation:rule="self.projectRef == oldSelf.projectRef",message="spec.projectRef is immutable"
// +kubebuilder:validation:XValidation:rule="self.quarter == oldSelf.quarter",message="spec.quarter is immutable"
type FindingTrendSpec struct {
	// projectRef names the Project whose findings are counted. Immutable.
	// +structType=atomic
	// +required
	ProjectRef ProjectReference `json:"projectRef"`
	// quarter that the rows describe, in UTC, for example "2026q4". Immutable.
	// +required
	Quarter Quarter `json:"quarter"`
	// updatedAt is when the rows were last written: at most once an hour.
	// +required
	UpdatedAt Time `json:"updatedAt"`
	// days are the rows, one per day on which anything changed. A day without a row equals the day before, and
	// nothing happened on it. At most 92.
	// +listType=map
	// +listMapKey=day
	// +kubebuilder:validation:MaxItems=92
	// +optional
	Days []FindingTrendDay `json:"days,omitempty"`
}

// FindingTrendDay counts a project's findings at the end of a day, or when the row was last written on it, and what
// happened to them on that day.
type FindingTrendDay struct {
	// day that the row describes, in UTC, for example "2026-11-23".
	// +required
	Day Day `json:"day"`
	// open counts the findings in state open, by severity.
	// +optional
	Open FindingTrendOpen `json:"open,omitzero"`
	// openMuted counts the findings in state open_muted.
	// +kubebuilder:validation:Minimum=0
	// +optional
	OpenMuted int32 `json:"openMuted,omitempty"`
	// opened counts the findings that were detected or reopened on the day.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Opened int32 `json:"opened,omitempty"`
	// closed counts the findings that a scan closed on the day.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Closed int32 `json:"closed,omitempty"`
	// muted counts the findings that a person, a policy or the source muted on the day.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Muted int32 `json:"muted,omitempty"`
	// age of the findings in state open, in days since they were detected. Absent if there are none.
	// +optional
	Age *FindingTrendSpread `json:"age,omitempty"`
	// timeToClose of the findings closed on the day, in days since they were detected. Absent if there are none.
	// +optional
	TimeToClose *FindingTrendSpread `json:"timeToClose,omitempty"`
}

// FindingTrendOpen counts open findings by severity.
type FindingTrendOpen struct {
	// critical is the number of high ones with a score of 9.0 or more.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Critical int32 `json:"critical,omitempty"`
	// high is the number of findings of severity high, including critical ones.
	// +kubebuilder:validation:Minimum=0
	// +optional
	High int32 `json:"high,omitempty"`
	// medium is the number of findings of severity medium.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Medium int32 `json:"medium,omitempty"`
	// low is the number of findings of severity low.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Low int32 `json:"low,omitempty"`
}

// FindingTrendSpread is the distribution of a number of days over findings.
type FindingTrendSpread struct {
	// median number of days: half of the findings have at most this many.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Median int32 `json:"median"`
	// p90 is the 90th percentile: nine tenths of the findings have at most this many days.
	// +kubebuilder:validation:Minimum=0
	// +optional
	P90 int32 `json:"p90"`
	// sample holds the days of at most 10 findings, in order: all of them, or those in the middle of each tenth.
	// It serves to estimate the spread over several projects.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Sample []int32 `json:"sample,omitempty"`
}

// FindingTrend records how many findings a project had, day by day, for a quarter. Only the controllers write it; they
// remove it with the project, or two years after the quarter; the newest of those past two years stays.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=ftr,categories=appsec
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.projectRef.name`
// +kubebuilder:printcolumn:name="Quarter",type=string,JSONPath=`.spec.quarter`
// +kubebuilder:printcolumn:name="Updated",type=date,JSONPath=`.spec.updatedAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.spec.projectRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.quarter`
type FindingTrend struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec holds the recorded numbers. Only the controllers write it.
	// +required
	Spec FindingTrendSpec `json:"spec"`
}

// FindingTrendList is a list of FindingTrends.
//
// +kubebuilder:object:root=true
type FindingTrendList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FindingTrend `json:"items"`
}
