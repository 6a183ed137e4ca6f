package alerts

import "strings"

// row is one history of metrics, and what an alert makes of it. A row without want must not fire.
type row struct {
	reason string
	// series in the notation of promqltest, scraped each minute: 0+2x20 is 0, 2, 4 and so on to 40, _x5 nothing for five
	// minutes, and stale a scrape that no longer finds the series. $api and $controller are the labels of their jobs.
	// Labels that no alert uses are left out.
	series string
	// want is when the alert fires, with which labels besides those of its job and of the rule, and its summary. An alert
	// that still fires at the end of the series has no "to". Several alerts are a line each.
	want string
}

const never = ""

var rows = map[string][]row{
	"FindingsAPIAbsent": {
		{
			"no replica has ever answered", `up{$api, pod="a"} 0x9`,
			`from 5m {}: No replica of the REST API can be scraped.`,
		},
		{
			"the only replica ends", `findings_api_authorization_data_age_seconds{$api, pod="a"} 5x4 stale _x9`,
			`from 10m {}: No replica of the REST API can be scraped.`,
		},
		{
			"only another release answers",
			`findings_api_authorization_data_age_seconds{namespace="other", job="everything-api-metrics", pod="a"} 5x9`,
			`from 5m {}: No replica of the REST API can be scraped.`,
		},
		{
			"one replica of two ends", `
			findings_api_authorization_data_age_seconds{$api, pod="a"} 5x4 stale
			findings_api_authorization_data_age_seconds{$api, pod="b"} 5x19`, never,
		},
		{
			"the next one answers after four minutes", `
			findings_api_authorization_data_age_seconds{$api, pod="a"} 5x4 stale
			findings_api_authorization_data_age_seconds{$api, pod="b"} _x10 5x9`, never,
		},
	},
	"FindingsAPIErrors": {
		{
			"two requests in a hundred fail", `
			findings_api_requests_total{$api, pod="a", code="200"} 0+98x20
			findings_api_requests_total{$api, pod="a", code="503"} 0+2x20`,
			"from 11m {}: More than 1% of the requests are answered with an error of the server.",
		},
		{
			"only one replica fails, and is removed", `
			findings_api_requests_total{$api, pod="a", code="500"} 0+2x14 stale
			findings_api_requests_total{$api, pod="b", code="200"} 0+98x30`,
			"from 11m to 17m {}: More than 1% of the requests are answered with an error of the server.",
		},
		{
			"nine in a thousand fail", `
			findings_api_requests_total{$api, pod="a", code="200"} 0+991x20
			findings_api_requests_total{$api, pod="a", code="500"} 0+9x20`, never,
		},
		{"there has been no request", `up{$api, pod="a"} 1x20`, never},
		{
			"there is no request any more", `
			findings_api_requests_total{$api, pod="a", code="200"} 7x20
			findings_api_requests_total{$api, pod="a", code="500"} 7x20`, never,
		},
		{
			"the first error creates its counter", `
			findings_api_requests_total{$api, pod="a", code="200"} 0+1x40
			findings_api_requests_total{$api, pod="a", code="500"} _x10 1x30`, never,
		},
		{
			"all requests of three minutes fail", `
			findings_api_requests_total{$api, pod="a", code="200"} 0+10x10 100x3 100+10x20
			findings_api_requests_total{$api, pod="a", code="500"} 0x10 10+10x2 30x21`, never,
		},
		{
			"the process restarts after many errors", `
			findings_api_requests_total{$api, pod="a", code="200"} 900+98x9 0+98x20
			findings_api_requests_total{$api, pod="a", code="500"} 900x9 0x20`, never,
		},
		{
			"the clients leave before the answer", `
			findings_api_requests_total{$api, pod="a", code="200"} 0+5x20
			findings_api_requests_total{$api, pod="a", code="499"} 0+5x20`, never,
		},
	},
	"FindingsAPISlow": {
		{
			"two requests in a hundred take longer than a second",
			durations(`method="GET", route="/v1/findings"`, "0+98x20", "0+100x20"), tooSlow,
		},
		{
			"operations are read slowly",
			durations(`method="GET", route="/v2/triage-operations"`, "0x20", "0+1x20"), tooSlow,
		},
		{
			"nine in a thousand take longer than a second",
			durations(`method="GET", route="/v1/findings"`, "0+991x20", "0+1000x20"), never,
		},
		{
			"uploads and exports take long",
			durations(`method="POST", route="/v2/repos/{id}/projects/{project_id}/scans"`, "0x20", "0+1x20") +
				durations(`method="POST", route="/repos/{owner}/{repo}/code-scanning/sarifs"`, "0x20", "0+1x20") +
				durations(`method="GET", route="/v2/finding-export"`, "0x20", "0+1x20"), never,
		},
		{
			"operations, policies and redeliveries wait for the controllers",
			durations(`method="POST", route="/v2/triage-operations"`, "0x20", "0+1x20") +
				durations(`method="PATCH", route="/v2/triage-policies/{id}"`, "0x20", "0+1x20") +
				durations(`method="POST", route="/v2/webhook-deliveries/{id}/redeliver"`, "0x20", "0+1x20"), never,
		},
		{"there has been no request", `up{$api, pod="a"} 1x20`, never},
		{"there is no request any more", durations(`method="GET", route="/v1/findings"`, "7x20", "9x20"), never},
		{
			"a single slow request creates its histogram",
			durations(`method="GET", route="/v1/findings"`, "_x10 0x20", "_x10 1x20"), never,
		},
		{
			"the process restarts after many slow requests",
			durations(`method="GET", route="/v1/findings"`, "9x9 0+1x20", "900x9 0+1x20"), never,
		},
	},
	"FindingsAPIKeysStale": {
		{
			"one replica of two reads no keys, and is removed", `
			findings_api_authorization_data_age_seconds{$api, pod="a"} 5x20
			findings_api_authorization_data_age_seconds{$api, pod="b"} 5x2 31+60x3 stale`,
			`from 4m to 6m {pod="b"}: ` + keysStale,
		},
		{
			"no replica reads keys", `
			findings_api_authorization_data_age_seconds{$api, pod="a"} 31+60x3
			findings_api_authorization_data_age_seconds{$api, pod="b"} 31+60x3`,
			`from 1m {pod="a"}: ` + keysStale + "\n" + `from 1m {pod="b"}: ` + keysStale,
		},
		{
			"the scrape configuration gives no label pod", `
			findings_api_authorization_data_age_seconds{$api, instance="10.0.0.1:8081"} 5x9
			findings_api_authorization_data_age_seconds{$api, instance="10.0.0.2:8081"} 5x2 31+60x6`,
			`from 4m {}: ` + keysStale,
		},
		{"the keys are half a minute old", `findings_api_authorization_data_age_seconds{$api, pod="a"} 30x9`, never},
		{"one list is late", `findings_api_authorization_data_age_seconds{$api, pod="a"} 5x2 31 5x6`, never},
	},
	"FindingsReadModelBehind": {
		{
			"one replica of two is behind, and is removed", `
			findings_read_model_lag_seconds{$api, pod="a"} 0x20
			findings_read_model_lag_seconds{$api, pod="b"} 0x2 31x7 stale`,
			`from 8m to 10m {pod="b"}: A replica of the REST API shows outdated data.`,
		},
		{"it is half a minute behind", `findings_read_model_lag_seconds{$api, pod="a"} 30x9`, never},
		{"it has caught up after four minutes", `findings_read_model_lag_seconds{$api, pod="a"} 31x4 0x9`, never},
		{"it restarts", `findings_read_model_lag_seconds{$api, pod="a"} 31x4 stale 31x4`, never},
	},
	"FindingsAPIDeaf": {
		{
			"one replica of two receives nothing about one kind, and is removed", `
			findings_read_model_heard_seconds{$api, pod="a", kind="findings"} 20x20
			findings_read_model_heard_seconds{$api, pod="b", kind="findings"} 20x2 151+60x3 stale
			findings_read_model_heard_seconds{$api, pod="b", kind="projects"} 20x6 stale`,
			`from 4m to 6m {kind="findings", pod="b"}: A replica of the REST API receives nothing about findings, ` +
				`and may show outdated data. It refuses requests that depend on it after 5m.`,
		},
		{"150 seconds have passed", `findings_read_model_heard_seconds{$api, pod="a", kind="scans"} 150x9`, never},
		{"a bookmark is late", `findings_read_model_heard_seconds{$api, pod="a", kind="scans"} 20 90 151 20 90 20`, never},
	},
	"FindingsUnreadableObjects": {
		{
			"only the REST API skips two findings, which are then repaired", `
			findings_unreadable_objects{$api, pod="a", kind="findings"} 0x2 2x3 0x9
			findings_unreadable_objects{$controller, pod="c", kind="findings"} 0x20
			findings_unreadable_objects{$controller, pod="c", kind="scans"} 0x20`,
			`from 4m to 6m {kind="findings"}: 2 findings cannot be read, and are skipped.`,
		},
		{
			"only the controllers skip it, and their replica is removed", `
			findings_unreadable_objects{$api, pod="a", kind="reviews"} 0x9
			findings_unreadable_objects{$controller, pod="c", kind="reviews"} 1x3 stale`,
			`from 1m to 3m {kind="reviews"}: 1 reviews cannot be read, and are skipped.`,
		},
		{"all can be read", `findings_unreadable_objects{$api, pod="a", kind="findings"} 0x9`, never},
		{"it is repaired at once", `findings_unreadable_objects{$api, pod="a", kind="findings"} 0x2 1 0x5`, never},
	},
	"FindingsProcessRestarts": {
		{
			"one replica of the REST API restarts four times within an hour, and is removed", `
			process_start_time_seconds{$api, pod="a"} 100x9 200x9 300x9 400x9 500x9 stale
			up{$api, pod="a"} 1x49 stale
			up{$api, pod="b"} 1x70`,
			`from 40m to 49m {pod="a"}: a has restarted 4 times within an hour.`,
		},
		{
			"one replica of the controllers ends again and again, and is removed while it is down", `
			process_start_time_seconds{$controller, pod="c"} 100x8 stale 200x8 stale 300x8 stale 400x8 stale 500x8 stale
			up{$controller, pod="c"} 1x8 0 1x8 0 1x8 0 1x8 0 1x8 0x5 stale
			up{$controller, pod="d"} 1x85`,
			`from 40m to 54m {pod="c"}: c has restarted 4 times within an hour.`,
		},
		{
			"a process restarts three times", `
			process_start_time_seconds{$api, pod="a"} 100 200 300 400x9
			up{$api, pod="a"} 1x12`, never,
		},
		{
			"a process restarts every twenty minutes", `
			process_start_time_seconds{$api, pod="a"} 100x19 200x19 300x19 400x19 500x19 600x19
			up{$api, pod="a"} 1x119`, never,
		},
		{
			"four replicas are replaced", `
			process_start_time_seconds{$api, pod="a"} 100x4 stale
			process_start_time_seconds{$api, pod="b"} _x5 200x4 stale
			process_start_time_seconds{$api, pod="c"} _x10 300x4 stale
			process_start_time_seconds{$api, pod="d"} _x15 400x4 stale
			process_start_time_seconds{$api, pod="e"} _x20 500x9
			up{$api, pod="a"} 1x4 stale
			up{$api, pod="b"} _x5 1x4 stale
			up{$api, pod="c"} _x10 1x4 stale
			up{$api, pod="d"} _x15 1x4 stale
			up{$api, pod="e"} _x20 1x9`, never,
		},
	},
	"FindingsProcessDown": {
		{
			"a new replica of the REST API never answers, and is removed", `
			up{$api, pod="a"} 0x19 stale
			up{$api, pod="b"} 1x29`,
			`from 15m to 19m {pod="a"}: For 15 minutes, the share of successful scrapes of a over the last 30 minutes ` +
				`has been below one half.`,
		},
		{
			"one replica of the controllers stops answering, and is removed", `
			up{$controller, pod="c"} 1x39 0x39 stale
			up{$controller, pod="d"} 1x89`,
			`from 70m to 79m {pod="c"}: For 15 minutes, the share of successful scrapes of c over the last 30 minutes ` +
				`has been below one half.`,
		},
		{
			"it answers one scrape in three", `up{$api, pod="a"} ` + strings.Repeat("1 0 0 ", 10),
			`from 19m {pod="a"}: For 15 minutes, the share of successful scrapes of a over the last 30 minutes ` +
				`has been below one half.`,
		},
		{"it answers every other scrape", `up{$api, pod="a"} ` + strings.Repeat("1 0 ", 20), never},
		{
			"one replica of two restarts slowly", `
			up{$api, pod="a"} 1x60
			up{$api, pod="b"} 1x20 0x12 1x30`, never,
		},
		{"it is removed before it answers", `up{$api, pod="a"} 0x14 stale _x9`, never},
	},
	"FindingsUploadsFail": {
		{
			"two imports in ten have failed within an hour", `
			findings_uploads_ended_total{$api, pod="a", outcome="completed"} 0 8x80
			findings_uploads_ended_total{$api, pod="a", outcome="failed"} 0 2x80`,
			"from 6m to 59m {}: More than 10% of the imports of uploads fail for reasons other than the client's request.",
		},
		{
			"fewer than one in ten fails", `
			findings_uploads_ended_total{$api, pod="a", outcome="completed"} 0+91x20
			findings_uploads_ended_total{$api, pod="a", outcome="failed"} 0+9x20`, never,
		},
		{
			"the client's requests are refused", `
			findings_uploads_ended_total{$api, pod="a", outcome="refused"} 0+9x20
			findings_uploads_ended_total{$api, pod="a", outcome="failed"} 0x20`, never,
		},
		{"there has been no upload", `findings_uploads_ended_total{$api, pod="a", outcome="failed"} 0x20`, never},
		{
			"the process restarts after many failures", `
			findings_uploads_ended_total{$api, pod="a", outcome="completed"} 9x9 0+1x20
			findings_uploads_ended_total{$api, pod="a", outcome="failed"} 900x9 0x20`, never,
		},
	},
	"FindingsUploadsTurnedAway": {
		{
			"one replica of two turns away two uploads in ten", `
			findings_uploads_refused_total{$api, pod="a", reason="replica_limit"} 0+1x30
			findings_uploads_refused_total{$api, pod="b", reason="replica_memory"} 0+1x30
			findings_uploads_accepted_total{$api, pod="a"} 0+4x30
			findings_uploads_accepted_total{$api, pod="b"} 0+4x30`,
			"from 16m {}: More than one upload in ten is turned away because the replica has no room for it.",
		},
		{
			"it turns away all", `
			findings_uploads_refused_total{$api, pod="a", reason="replica_limit"} 0+1x30
			findings_uploads_accepted_total{$api, pod="a"} 8x30`,
			"from 16m {}: More than one upload in ten is turned away because the replica has no room for it.",
		},
		{
			"fewer than one in ten is turned away", `
			findings_uploads_refused_total{$api, pod="a", reason="replica_limit"} 0+9x30
			findings_uploads_accepted_total{$api, pod="a"} 0+91x30`, never,
		},
		{
			"an organization reaches its limit", `
			findings_uploads_refused_total{$api, pod="a", reason="organization_limit"} 0+9x30
			findings_uploads_refused_total{$api, pod="a", reason="replica_limit"} 0x30
			findings_uploads_accepted_total{$api, pod="a"} 0+1x30`, never,
		},
		{
			"there has been no upload", `
			findings_uploads_refused_total{$api, pod="a", reason="replica_limit"} 0x30
			findings_uploads_accepted_total{$api, pod="a"} 0x30`, never,
		},
	},
	"FindingsRateLimitWithoutRedis": {
		{
			"one replica of two counts two requests in ten itself", `
			findings_ratelimit_requests_total{$api, pod="a", store="memory"} 0x20
			findings_ratelimit_requests_total{$api, pod="a", store="redis"} 0+9x20
			findings_ratelimit_requests_total{$api, pod="b", store="memory"} 0+2x20
			findings_ratelimit_requests_total{$api, pod="b", store="redis"} 0+8x20`,
			`from 11m {pod="b"}: A replica counts more than one request in ten by itself, ` +
				`because Redis does not answer in time.`,
		},
		{
			"fewer than one in ten", `
			findings_ratelimit_requests_total{$api, pod="a", store="memory"} 0+9x20
			findings_ratelimit_requests_total{$api, pod="a", store="redis"} 0+91x20`, never,
		},
		{
			"there is no request any more", `
			findings_ratelimit_requests_total{$api, pod="a", store="memory"} 9x20
			findings_ratelimit_requests_total{$api, pod="a", store="redis"} 0x20`, never,
		},
	},
	"FindingsControllersIdle": {
		{
			"no replica has ever answered", `up{$controller, pod="c"} 0x9`,
			"from 5m {}: No replica of the controllers leads, so no change is processed and no webhook is sent.",
		},
		{
			"the leader is removed, and no other leads", `
			leader_election_master_status{$controller, pod="c"} 1x4 stale
			leader_election_master_status{$controller, pod="d"} 0x15`,
			"from 10m {}: No replica of the controllers leads, so no change is processed and no webhook is sent.",
		},
		{
			"one replica of two leads", `
			leader_election_master_status{$controller, pod="c"} 1x9
			leader_election_master_status{$controller, pod="d"} 0x9`, never,
		},
		{
			"the other replica takes over after four minutes", `
			leader_election_master_status{$controller, pod="c"} 1x4 stale
			leader_election_master_status{$controller, pod="d"} 0x9 1x9`, never,
		},
	},
	"FindingsControllersDeaf": {
		{
			"one replica of two receives nothing about one kind, and is removed", `
			findings_controller_heard_seconds{$controller, pod="c", kind="scans"} 20x20
			findings_controller_heard_seconds{$controller, pod="d", kind="scans"} 20x2 151+60x3 stale
			findings_controller_heard_seconds{$controller, pod="d", kind="reviews"} 20x6 stale`,
			`from 4m to 6m {kind="scans", pod="d"}: A replica of the controllers receives nothing about scans, ` +
				`so its changes are not processed.`,
		},
		{"150 seconds have passed", `findings_controller_heard_seconds{$controller, pod="c", kind="scans"} 150x9`, never},
		{"a bookmark is late", `findings_controller_heard_seconds{$controller, pod="c", kind="scans"} 20 90 151 20 90 20`, never},
	},
	"FindingsReconcileErrors": {
		{
			"two reconciles in ten of one controller fail", `
			controller_runtime_reconcile_errors_total{$controller, pod="c", controller="scan"} 0+2x30
			controller_runtime_reconcile_total{$controller, pod="c", controller="scan", result="error"} 0+2x30
			controller_runtime_reconcile_total{$controller, pod="c", controller="scan", result="success"} 0+8x30
			controller_runtime_reconcile_errors_total{$controller, pod="c", controller="finding"} 0x30
			controller_runtime_reconcile_total{$controller, pod="c", controller="finding", result="success"} 0+900x30`,
			`from 16m {controller="scan"}: More than one reconcile in ten of scan fails.`,
		},
		{
			"fewer than one in ten fails", `
			controller_runtime_reconcile_errors_total{$controller, pod="c", controller="scan"} 0+9x30
			controller_runtime_reconcile_total{$controller, pod="c", controller="scan", result="error"} 0+9x30
			controller_runtime_reconcile_total{$controller, pod="c", controller="scan", result="success"} 0+91x30`, never,
		},
		{
			"nothing has been reconciled", `
			controller_runtime_reconcile_errors_total{$controller, pod="c", controller="scan"} 0x30
			controller_runtime_reconcile_total{$controller, pod="c", controller="scan", result="error"} 0x30`, never,
		},
		{
			"the leader restarts after many errors", `
			controller_runtime_reconcile_errors_total{$controller, pod="c", controller="scan"} 900x9 0x30
			controller_runtime_reconcile_total{$controller, pod="c", controller="scan", result="error"} 900x9 0x30
			controller_runtime_reconcile_total{$controller, pod="c", controller="scan", result="success"} 900x9 0+1x30`, never,
		},
	},
	"FindingsWebhooksLate": {
		{
			"a delivery waits for more than six hours, until another replica leads", `
			findings_webhook_oldest_pending_seconds{$controller, pod="c"} 21601+60x19 stale
			findings_webhook_oldest_pending_seconds{$controller, pod="d"} 0x30`,
			"from 15m to 19m {}: A webhook delivery has waited for more than six hours.",
		},
		{"it waits for six hours", `findings_webhook_oldest_pending_seconds{$controller, pod="c"} 21600x30`, never},
		{"it is sent soon after", `findings_webhook_oldest_pending_seconds{$controller, pod="c"} 21601+60x14 0x9`, never},
	},
	"FindingsQueueLong": {
		{
			"more than a thousand objects wait, of two priorities", `
			workqueue_depth{$controller, pod="c", name="finding", priority="0"} 400x30
			workqueue_depth{$controller, pod="c", name="finding", priority="-100"} 601x30
			workqueue_depth{$controller, pod="c", name="scan", priority="0"} 0x30`,
			`from 15m {name="finding"}: 1001 objects wait for the controller finding.`,
		},
		{
			"the earlier leader and the present one each have six hundred", `
			workqueue_depth{$controller, pod="c", name="finding", priority="0"} 600x30
			workqueue_depth{$controller, pod="d", name="finding", priority="0"} 600x30`, never,
		},
		{"a thousand wait", `workqueue_depth{$controller, pod="c", name="finding", priority="0"} 1000x30`, never},
		{"an import is over soon", `workqueue_depth{$controller, pod="c", name="finding", priority="0"} 9000-600x30`, never},
	},
}

const keysStale = "A replica has not read the API keys for over a minute. " +
	"It refuses all requests once they are older than 90s."

const tooSlow = "from 11m {}: 1% of requests take longer than a second " +
	"(without uploads, exports and requests that wait for controllers)."

// durations returns the histogram of requests of which so many take at most a second, and all of which take less than
// three.
func durations(labels, withinASecond, all string) string {
	bucket := `findings_api_request_duration_seconds_bucket{$api, pod="a", ` + labels
	return bucket + `, le="1"} ` + withinASecond + "\n" + bucket + `, le="2.5"} ` + all + "\n" +
		bucket + `, le="+Inf"} ` + all + "\n"
}
