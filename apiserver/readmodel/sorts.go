package readmodel

import "github.com/appsec-dev/findings-operator/apiserver/readmodel/index"

// The fields that lists can be sorted by.
const (
	SortCreatedAt       index.Sort = "created_at"
	SortUpdatedAt       index.Sort = "updated_at"
	SortSeverity        index.Sort = "severity"
	SortLastCommittedAt index.Sort = "last_committed_at"
	SortPRTitle         index.Sort = "pr_title"
	SortPRNumber        index.Sort = "pr_number"
	SortPRStatus        index.Sort = "pr_status"
	SortPRAuthor        index.Sort = "pr_author"
	SortRepoName        index.Sort = "repo_name"
	SortOpenIssueCount  index.Sort = "open_issue_count"
)
