module github.com/united-workforce/uwf/utilagent

go 1.26.0

require (
	github.com/JohannesKaufmann/html-to-markdown/v2 v2.5.2
	github.com/bmatcuk/doublestar/v4 v4.10.4
	github.com/fxamacker/cbor/v2 v2.9.6
	github.com/landlock-lsm/go-landlock v0.11.0
	github.com/stretchr/testify v1.12.1
	github.com/united-workforce/uwf/cas v0.1.0
	github.com/united-workforce/uwf/protocol v0.1.0
	github.com/united-workforce/uwf/step v0.1.0
	github.com/united-workforce/uwf/util v0.1.0
	golang.org/x/net v0.62.0
	golang.org/x/sys v0.49.0
	golang.org/x/text v0.43.0
)

require (
	github.com/JohannesKaufmann/dom v0.3.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/goccy/go-yaml v1.19.2 // indirect
	github.com/klauspost/compress v1.20.1 // indirect
	github.com/united-workforce/uwf/internal/thirdparty/jsonschema v0.1.0 // indirect
	github.com/united-workforce/uwf/internal/thirdparty/lean v0.1.0 // indirect
	github.com/united-workforce/uwf/internal/thirdparty/xxh3 v0.1.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/term v0.47.0 // indirect
	kernel.org/pub/linux/libs/security/libcap/psx v1.2.77 // indirect
)
