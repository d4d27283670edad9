package llm

import (
	"encoding/json"
	"html"
	"net/http"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

// refusal is an error as an endpoint words it, whatever the shape of the body.
type refusal struct {
	message string
	code    string // "insufficient_quota", "429", "overloaded_error" …
	status  int    // if the body names one
	delay   string // Google's RetryInfo, such as "34s"
	reset   string // a time in ms at which a limit is lifted
	failed  string // the call that was refused
}

// httpError explains an HTTP status with its body.
func (c *Client) httpError(status int, h http.Header, body []byte) *Error {
	r := readRefusal(body)
	if r.message == "" {
		r.message = http.StatusText(status)
	}
	if (status < 400 || status > 599) && r.status >= 400 && r.status <= 599 {
		status = r.status // a 200 that is none
	}
	e := &Error{
		Kind: classify(status, r), Status: status, Message: c.mask(r.message),
		Failed: r.failed, Wait: askedWait(h, r),
		final: h.Get("X-Should-Retry") == "false",
	}
	return e
}

// readRefusal reads an error body: JSON in one of the known shapes, HTML, or
// plain text.
func readRefusal(body []byte) refusal {
	text := strings.TrimSpace(string(body))
	var v any
	if json.Unmarshal(body, &v) != nil {
		if strings.HasPrefix(text, "<") {
			return refusal{message: textOfHTML(text)}
		}
		return refusal{message: text}
	}
	return refusalOf(v)
}

// refusalOf knows the shapes {error:{…}}, {error:"…"}, [{error:{…}}],
// {object:"error",message,…}, {type:"error",error:{…}} and {detail:…}.
func refusalOf(v any) refusal {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			return refusalOf(v[0])
		}
	case string:
		return refusal{message: v}
	case map[string]any:
		if inner, ok := v["error"]; ok && inner != nil {
			if s, ok := inner.(string); ok {
				return refusal{message: s}
			}
			return refusalOf(inner)
		}
		return refusalFields(v)
	}
	return refusal{}
}

func refusalFields(m map[string]any) refusal {
	r := refusal{message: str(m["message"]), code: str(m["code"]), failed: str(m["failed_generation"])}
	if r.message == "" && m["detail"] != nil {
		r.message = jsonText(m["detail"])
	}
	r.status, _ = strconv.Atoi(r.code)
	// The type is only a name for a whole family ("invalid_request_error") in
	// some shapes and the only code in others.
	r.code = strings.TrimSpace(r.code + " " + str(m["type"]) + " " + str(m["status"]))
	if meta, ok := m["metadata"].(map[string]any); ok {
		r.fromMetadata(meta)
	}
	details, _ := m["details"].([]any)
	for _, d := range details {
		if d, ok := d.(map[string]any); ok && r.delay == "" {
			r.delay = str(d["retryDelay"])
		}
	}
	return r
}

// fromMetadata reads what a router (OpenRouter) passes on: its own message says
// only that the provider failed, the provider's says why.
func (r *refusal) fromMetadata(meta map[string]any) {
	if headers, ok := meta["headers"].(map[string]any); ok {
		r.reset = str(headers["X-RateLimit-Reset"])
	}
	raw := str(meta["raw"])
	if raw == "" {
		return
	}
	inner := readRefusal([]byte(raw))
	if inner.message != "" {
		raw = inner.message
	}
	if name := str(meta["provider_name"]); name != "" {
		raw = name + ": " + raw
	}
	r.message += ": " + raw
	r.code += " " + inner.code
}

// str is a JSON string or number as text, "" for anything else.
func str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

func jsonText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

var (
	htmlTitle  = lazyregexp.New(`(?is)<title[^>]*>(.*?)</title>`)
	htmlHidden = lazyregexp.New(`(?is)<(script|style|head)[^>]*>.*?</(script|style|head)>`)
	htmlTag    = lazyregexp.New(`(?s)<[^>]*>`)
)

// textOfHTML is what a proxy's error page says, in a line.
func textOfHTML(page string) string {
	page = page[:min(len(page), 64<<10)]
	if m := htmlTitle().FindStringSubmatch(page); m != nil {
		if title := strings.Join(strings.Fields(html.UnescapeString(m[1])), " "); title != "" {
			return "an HTML page instead of an answer: " + title
		}
	}
	text := htmlTag().ReplaceAllString(htmlHidden().ReplaceAllString(page, " "), " ")
	text = strings.Join(strings.Fields(html.UnescapeString(text)), " ")
	if r := []rune(text); len(r) > 200 {
		text = string(r[:200]) + "…"
	}
	return strings.TrimSuffix("an HTML page instead of an answer: "+text, ": ")
}
