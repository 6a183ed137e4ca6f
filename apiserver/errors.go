package apiserver

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// fail answers a request with err. It is the only place that turns an error into a status and a body.
func fail(c *gin.Context, err error) {
	p := problem.Of(err)
	github := likeGitHub(c.Request.URL.Path)
	if github {
		p = asGitHub(p)
	}
	s := stateOf(c)
	s.err = p
	if p.Status == http.StatusUnauthorized && s.console == nil {
		c.Header("WWW-Authenticate", "Bearer")
	}
	if p.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	if p.Location != "" {
		c.Header("Location", p.Location)
	}
	if s.console != nil {
		failPage(c, s.console, p)
		return
	}
	// The order is for human readers: the generated type begins with the code.
	shown := struct {
		Message string `json:"message,omitempty"`
		Error   string `json:"error"`
		Detail  string `json:"detail"`
		Code    string `json:"code"`
		Field   string `json:"field"`
	}{"", p.Message, p.Detail, p.Code, p.Field}
	if github {
		shown.Message = gitHubMessage(p, c.Request.Method)
	}
	body, err := json.Marshal(shown)
	if err != nil {
		panic(err) // strings always encode
	}
	send(c, p.Status, content.Of(body))
	c.Abort()
}
