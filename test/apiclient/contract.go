package apiclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// routes finds the operation for a request in the openapi.yaml of this repository, regardless of what the deployment
// serves.
var routes = sync.OnceValues(func() (routers.Router, error) {
	spec, err := openapi.Load()
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(spec)
})

// limitHeaders are in every answer; each is an integer.
var limitHeaders = []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}

// Check compares an answer with the contract. The rules for all answers also apply to paths and
// methods that the contract does not describe.
func Check(request *http.Request, answer *Answer) error {
	if answer.Header.Get("X-Request-Id") == "" {
		return errors.New("the header x-request-id is missing")
	}
	for _, name := range limitHeaders {
		if _, err := strconv.Atoi(answer.Header.Get(name)); err != nil {
			return fmt.Errorf("the header %s is no whole number: %w", name, err)
		}
	}
	if undescribed(request) {
		return nil
	}
	if request.Method == http.MethodHead || answer.Status == http.StatusNoContent ||
		answer.Status == http.StatusNotModified {
		if len(answer.Body) > 0 {
			return errors.New("there must be no body")
		}
		return nil
	}
	router, err := routes()
	if err != nil {
		return err
	}
	route, _, err := router.FindRoute(request)
	if got := answer.Header.Get("Content-Type"); got != jsonMediaType && (err != nil || !isFile(route, answer)) {
		return fmt.Errorf("Content-Type is %q", got)
	}
	if err != nil {
		err = checkBody("#/components/schemas/Error", answer.Body)
	} else {
		err = checkResponse(route, answer)
	}
	if err == nil && answer.Status >= http.StatusBadRequest {
		err = checkCode(answer.Body)
	}
	return err
}

const jsonMediaType = "application/json"

// isFile reports whether an answer is a file or a stream, which the contract declares not to be JSON.
func isFile(route *routers.Route, answer *Answer) bool {
	described := route.Operation.Responses.Status(answer.Status)
	if described == nil || described.Value.Content.Get(jsonMediaType) != nil {
		return false
	}
	return answer.Header.Get("Content-Disposition") != "" || answer.Header.Get("Content-Type") == eventsMediaType
}

// eventsMediaType is the media type of a stream of events.
const eventsMediaType = "text/event-stream"

// undescribed reports whether a path is that of the contract itself or of its documentation.
func undescribed(request *http.Request) bool {
	return request.URL.Path == "/openapi.json" || request.URL.Path == "/docs" ||
		strings.HasPrefix(request.URL.Path, "/docs/")
}

// checkCode refuses a code that the contract does not list. Its schema allows others, because more may be added.
func checkCode(body []byte) error {
	var answered openapi.Error
	if err := json.Unmarshal(body, &answered); err != nil {
		return err
	}
	spec, err := openapi.Load()
	if err != nil {
		return err
	}
	listed := spec.Components.Schemas["Error"].Value.Properties["code"].Value.Description
	if !strings.Contains(listed, "`"+answered.Code+"`") {
		return fmt.Errorf("the contract does not list the code %q", answered.Code)
	}
	return nil
}
