package main

import (
	"encoding/json"
	"time"

	"golang.org/x/mod/module"
)

// bomFile is the file in an archive that lists what its programs are built from, for vulnerability scanners.
const bomFile = "SBOM.cdx.json"

// billOfMaterials returns that list as CycloneDX 1.6 (ECMA-424).
func billOfMaterials(d delivery, used []module.Version) ([]byte, error) {
	type component struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Version string `json:"version"`
		PURL    string `json:"purl"`
	}
	components := []component{}
	for _, m := range used {
		components = append(components, component{"library", m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version})
	}
	out, err := json.MarshalIndent(map[string]any{
		"bomFormat":   "CycloneDX",
		"specVersion": "1.6",
		"version":     1,
		"metadata": map[string]any{
			"timestamp": d.when.UTC().Format(time.RFC3339),
			"component": component{"application", "uwf", d.version, "pkg:github/united-workforce/uwf@" + d.version},
		},
		"components": components,
	}, "", "  ")
	return append(out, '\n'), err
}
