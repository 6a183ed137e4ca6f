# The image for those who have an engine; `make image` builds it without one, with an SBOM. Build it
# with the repository as its context:
#
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=0.1.0 -t findings-operator .
FROM --platform=$BUILDPLATFORM docker.io/library/golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY hack/image hack/image
RUN cd hack/image && go run . --certificates /ca-certificates.crt
COPY api api
COPY apiserver apiserver
COPY client client
COPY cmd cmd
COPY controllers controllers
COPY internal internal
COPY scanimport scanimport
ARG TARGETOS TARGETARCH VERSION=devel
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false \
    -ldflags="-s -w -buildid= -X github.com/appsec-dev/findings-operator/internal/version.stamped=${VERSION#v}" \
    -o /findings-operator ./cmd/findings-operator

FROM scratch
ARG VERSION=devel
LABEL org.opencontainers.image.title="findings-operator" \
      org.opencontainers.image.description="Keeps an application-security team's findings in Kubernetes" \
      org.opencontainers.image.source="https://github.com/appsec-dev/findings-operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /findings-operator /findings-operator
USER 65532:65532
ENTRYPOINT ["/findings-operator"]
