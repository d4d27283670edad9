package workflows

import (
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"

	"github.com/united-workforce/uwf/protocol"
)

// SARIF 2.1.0 (OASIS), as much of it as a list of problems needs.
type (
	sarifLog struct {
		Version string     `json:"version"`
		Schema  string     `json:"$schema"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string       `json:"id"`
		ShortDescription sarifMessage `json:"shortDescription"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int           `json:"startLine"`
		StartColumn int           `json:"startColumn,omitempty"`
		Snippet     *sarifMessage `json:"snippet,omitempty"`
	}
)

// sarifRuleID is the one rule: problems have no kinds that a user could switch
// off one by one.
const sarifRuleID = "uwf/workflow"

// writeSARIF writes problems as a SARIF log with one run.
func writeSARIF(w io.Writer, version string, problems []protocol.Problem) error {
	run := sarifRun{
		Tool: sarifTool{sarifDriver{
			Name: "uwf", Version: version,
			Rules: []sarifRule{{sarifRuleID, sarifMessage{"The workflow can be put and run"}}},
		}},
		ColumnKind: "unicodeCodePoints", // as yamldoc counts them
		Results:    []sarifResult{},     // null would mean that the check did not run
	}
	for _, p := range problems {
		run.Results = append(run.Results, sarifOf(p))
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(sarifLog{
		Version: "2.1.0", Schema: "https://json.schemastore.org/sarif-2.1.0.json", Runs: []sarifRun{run},
	})
}

func sarifOf(p protocol.Problem) sarifResult {
	message := p.Message
	if p.Remedy != "" {
		message += "\n" + p.Remedy
	}
	physical := sarifPhysical{ArtifactLocation: sarifArtifact{sarifURI(p.File)}}
	if p.Line > 0 { // a region needs a line
		physical.Region = &sarifRegion{StartLine: p.Line, StartColumn: p.Column}
		if p.Excerpt != "" {
			physical.Region.Snippet = &sarifMessage{p.Excerpt}
		}
	}
	return sarifResult{
		RuleID: sarifRuleID, Level: "error", Message: sarifMessage{message},
		Locations: []sarifLocation{{physical}},
	}
}

// sarifURI is a path as a URI: relative as long as the path is, so that a
// scanner finds the file in its own checkout.
func sarifURI(path string) string {
	slashed := filepath.ToSlash(path)
	if filepath.IsAbs(path) {
		if slashed[0] != '/' {
			slashed = "/" + slashed // C:/x
		}
		return (&url.URL{Scheme: "file", Path: slashed}).String()
	}
	return (&url.URL{Path: slashed}).String()
}
