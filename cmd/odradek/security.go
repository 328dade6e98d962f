package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// security is how to encrypt and to authenticate. It is never printed.
type security struct {
	tls         bool
	ca          []byte // PEM; nil: the system's
	cert, key   []byte // PEM; nil: none
	skipVerify  bool
	anyHostname bool // certificates are checked, but not against the broker's name

	mechanism, user, password string
}

func (s *security) options() ([]kgo.Opt, error) {
	var opts []kgo.Opt
	if s.tls {
		config, err := s.tlsConfig()
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(config))
	}
	if s.mechanism == "" {
		return opts, nil
	}
	if s.user == "" {
		return nil, &usageError{reason: fmt.Sprintf("SASL %s needs a user: give -user, or sasl.jaas.config in the properties file", s.mechanism)}
	}
	var m sasl.Mechanism
	switch strings.ToUpper(s.mechanism) {
	case "PLAIN":
		m = plain.Auth{User: s.user, Pass: s.password}.AsMechanism()
	case "SCRAM-SHA-256":
		m = scram.Auth{User: s.user, Pass: s.password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		m = scram.Auth{User: s.user, Pass: s.password}.AsSha512Mechanism()
	default:
		return nil, &usageError{reason: fmt.Sprintf("the SASL mechanism %s isn't known; PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 are", s.mechanism)}
	}
	return append(opts, kgo.SASL(m)), nil
}

func (s *security) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: s.skipVerify || s.anyHostname} //nolint:gosec // wanted, or checked below
	if s.ca != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(s.ca) {
			return nil, errors.New("the trusted certificates: there is no certificate in PEM")
		}
	}
	if s.cert != nil {
		pair, err := tls.X509KeyPair(s.cert, s.key)
		if err != nil {
			return nil, fmt.Errorf("the client's certificate and key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if s.anyHostname && !s.skipVerify {
		config.VerifyConnection = func(state tls.ConnectionState) error {
			chain := x509.NewCertPool()
			for _, c := range state.PeerCertificates[1:] {
				chain.AddCert(c)
			}
			_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: config.RootCAs, Intermediates: chain})
			return err
		}
	}
	return config, nil
}
