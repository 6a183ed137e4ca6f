// Package importer imports scanner results into the cluster: Collect groups results by scan; Importer compares them
// with the existing findings and writes only the differences.
//
// The files, by what they are about; those marked with * do not call the API server:
//
//   - collect*, category*, analysis*: which scans the results belong to.
//   - client, require, provision, provision_projects: the repository and the projects.
//   - importer: the steps of an import; lease: its Leases; parent: whether its project still exists.
//   - history*, tools, read: the earlier scans and the existing findings.
//   - spec*, title*, rule*, remediation*, secrets*, permalink*, text*, budget*: the facts of a result.
//   - evidence*, aliases*, earlier*, facts*, recognise*: which finding a result is.
//   - compare, plan*, guard*, analysis*: the changes, and whether they are refused.
//   - write, apply, manager, retry, quota*: how the changes are written.
//   - record, progress*, summary*: what users see of the import.
//   - base, base_pair*, base_warnings*, base_fixed*, describe*: what a review of a pull request needs.
package importer
