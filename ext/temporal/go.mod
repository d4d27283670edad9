module github.com/united-workforce/uwf/ext/temporal

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/united-workforce/uwf/cas v0.1.0
	github.com/united-workforce/uwf/engine v0.1.0
	github.com/united-workforce/uwf/internal/thirdparty/cli v0.1.0
	github.com/united-workforce/uwf/moderator v0.1.0
	github.com/united-workforce/uwf/protocol v0.1.0
	github.com/united-workforce/uwf/remote v0.1.0
	github.com/united-workforce/uwf/util v0.1.0
	go.temporal.io/api v1.63.5
	go.temporal.io/sdk v1.50.0
	google.golang.org/protobuf v1.36.11
)

require (
	github.com/bmatcuk/doublestar/v4 v4.10.4 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/facebookgo/clock v0.0.0-20150410010913-600d898af40a // indirect
	github.com/fxamacker/cbor/v2 v2.9.6 // indirect
	github.com/goccy/go-yaml v1.19.2 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/golang/mock v1.6.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/grpc-ecosystem/go-grpc-middleware/v2 v2.3.2 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.22.0 // indirect
	github.com/klauspost/compress v1.20.1 // indirect
	github.com/landlock-lsm/go-landlock v0.11.0 // indirect
	github.com/mattn/go-shellwords v1.0.16 // indirect
	github.com/nexus-rpc/nexus-proto-annotations v0.1.0 // indirect
	github.com/nexus-rpc/sdk-go v0.7.0 // indirect
	github.com/robfig/cron v1.2.0 // indirect
	github.com/stretchr/objx v0.5.3 // indirect
	github.com/united-workforce/uwf/internal/thirdparty/jsonschema v0.1.0 // indirect
	github.com/united-workforce/uwf/internal/thirdparty/lean v0.1.0 // indirect
	github.com/united-workforce/uwf/internal/thirdparty/xxh3 v0.1.0 // indirect
	github.com/united-workforce/uwf/step v0.1.0 // indirect
	github.com/united-workforce/uwf/utilagent v0.1.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	github.com/xrash/smetrics v0.0.0-20240521201337-686a1a2994c1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/term v0.47.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/time v0.3.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260526163538-3dc84a4a5aaa // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260526163538-3dc84a4a5aaa // indirect
	google.golang.org/grpc v1.83.2 // indirect
	kernel.org/pub/linux/libs/security/libcap/psx v1.2.77 // indirect
)
