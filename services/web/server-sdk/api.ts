// Generated from /openapi.json (0f117fbd05f5fe13) by make sdk-types. Don't edit.
export interface components {
  schemas: {
    AlertClosedWebhookEvent: components['schemas']['WebhookEventEnvelope'] &
      ({
        /** @constant */
        type: 'alert.closed'
        data: components['schemas']['AlertPayload']
      } & {
        [key: string]: unknown
      })
    AlertOpenedWebhookEvent: components['schemas']['WebhookEventEnvelope'] &
      ({
        /** @constant */
        type: 'alert.opened'
        data: components['schemas']['AlertPayload']
      } & {
        [key: string]: unknown
      })
    AlertPayload: {
      /** @constant */
      object: 'alert'
      alert: {
        id: string
        view_id: string
        /** @enum {string} */
        kind: 'count' | 'share' | 'multiple'
        threshold: number
        window_minutes: number
      }
      /** @description Value that was compared with `threshold`. Null if there were too few sessions. */
      value: number | null
      /**
       * Format: date-time
       * @description Time of the check.
       */
      at: string
    } & {
      [key: string]: unknown
    }
    ApiErrorDetails: {
      fields?: components['schemas']['ApiFieldIssue'][]
      allowed_values?: string[]
      header_name?: string
      parameter_set?: string
      merged_into?: string
      erasure?: {
        id: string
        /** Format: date-time */
        erased_at: string
      }
      /** @enum {string} */
      next_action?: 'retry' | 'new_session' | 'reload_bundle' | 'contact_support'
    }
    ApiFieldIssue: {
      name: string
      issue: string
      expected?: string
      received?: string | number | boolean | null
    }
    Decision: {
      event_id: string
      verdict: components['schemas']['Verdict']
      /** @description 0-39: human, 40-69: inconclusive, 70-100: bot. */
      risk_score: number
      phase: components['schemas']['Phase']
      is_provisional: boolean
      manipulation: components['schemas']['ManipulationSummary'] | null
      evaluation_duration_ms: number
      /** Format: date-time */
      evaluated_at: string
    }
    EndpointFailingPayload: {
      /** @constant */
      object: 'webhook_endpoint_health'
      endpoint: {
        id: string
        name: string
        /** @enum {string} */
        status: 'active' | 'disabled'
        /** @description Null while active. */
        disabled_reason: ('failing' | 'gone') | null
        /**
         * Format: date-time
         * @description First failed attempt since the last success.
         */
        failing_since: string
      }
    } & {
      [key: string]: unknown
    }
    EndpointFailingWebhookEvent: components['schemas']['WebhookEventEnvelope'] &
      ({
        /** @constant */
        type: 'endpoint.failing'
        data: components['schemas']['EndpointFailingPayload']
      } & {
        [key: string]: unknown
      })
    GateApprovedWebhookPayload: {
      /** @description Service of the signup. */
      service_id: string
      /** @description Signup. Create only one account per id, no matter how often the event arrives. */
      gate_session_id: string
      /** @description Account at Gate. Store it, because agent tokens and dashboard logins refer to it. */
      gate_account_id: string
      /** @description Account name chosen by the agent, 1 to 100 characters. */
      account_name: string
      /** @description Unverified data from the agent. */
      metadata: {
        [key: string]: unknown
      } | null
      /** @description Verdict on the browser that approved. `score` is its `risk_score` divided by 100. */
      foil: {
        verdict: components['schemas']['Verdict']
        score: number | null
      }
      /** @description Public key to encrypt the credentials to. */
      delivery: components['schemas']['GateDeliveryRequest']
    }
    GateDeliveryRequest: {
      /** @constant */
      version: 1
      /** @constant */
      algorithm: 'x25519-hkdf-sha256/aes-256-gcm'
      /** @description SHA-256 of the raw public key, base64url. */
      key_id: string
      /** @description Raw X25519 public key, base64url. */
      public_key: string
    }
    GateSessionApprovedWebhookEvent: components['schemas']['WebhookEventEnvelope'] &
      ({
        /** @constant */
        type: 'gate.session.approved'
        data: components['schemas']['GateApprovedWebhookPayload']
      } & {
        [key: string]: unknown
      })
    IdentificationCandidate: {
      visitor_id: string
      /** @description Bits of evidence that session and candidate are the same device. Null if no key traits match, or if a trait differs that never changes on one device. */
      bits: number | null
      same_network: boolean | null
      /** @description Null if the device of the session or the candidate is unknown, if the candidate has more than 5,000 sessions, or if both appeared at the same time. */
      components: {
        agreed: components['schemas']['IdentificationComponent'][]
        changed: components['schemas']['IdentificationComponent'][]
        /** @description Unknown for the session, the candidate or both. */
        unknown: components['schemas']['IdentificationComponent'][]
      } | null
    }
    IdentificationComponent: {
      name: string
      /** @description Number of visitors, out of `of_visitors`, with the same value as the session. Null if the session's value is unknown. */
      visitors_with_it: number | null
    }
    IdentificationNext: {
      visitor_id: string
      /** @description Bits of evidence that session and candidate are the same device. Null if no key traits match, or if a trait differs that never changes on one device. */
      bits: number | null
      same_network: boolean | null
      /** @description Null if the device of the session or the candidate is unknown, if the candidate has more than 5,000 sessions, or if both appeared at the same time. */
      components: {
        agreed: components['schemas']['IdentificationComponent'][]
        changed: components['schemas']['IdentificationComponent'][]
        /** @description Unknown for the session, the candidate or both. */
        unknown: components['schemas']['IdentificationComponent'][]
      } | null
      /**
       * @description `kept_id_decides`: an id takes precedence over traits. `less_likely`: the chosen visitor has more bits. `too_little_evidence`: fewer than `bits_needed`. `present_elsewhere`: seen within the hour before the session, so its storage is not lost. `known_too_briefly`: less than a day old, so other devices may have the same traits. `look_of_several`: two visitors with these traits were seen within a day of each other. `no_clear_lead`: a different visitor is about as likely. `other_model`: same install id, but another device model. `corrected`: a correction moved the session away. `known_since`: would win now, but was not known at the time.
       * @enum {string}
       */
      lost_because:
        | 'kept_id_decides'
        | 'less_likely'
        | 'too_little_evidence'
        | 'present_elsewhere'
        | 'known_too_briefly'
        | 'look_of_several'
        | 'no_clear_lead'
        | 'other_model'
        | 'corrected'
        | 'known_since'
    }
    KeyExpiringPayload: {
      /** @constant */
      object: 'api_key_expiry'
      key: {
        id: string
        /** @enum {string} */
        type: 'publishable' | 'secret'
        name: string
        key_preview: string
        /** Format: date-time */
        expires_at: string
      }
    } & {
      [key: string]: unknown
    }
    KeyExpiringWebhookEvent: components['schemas']['WebhookEventEnvelope'] &
      ({
        /** @constant */
        type: 'key.expiring'
        data: components['schemas']['KeyExpiringPayload']
      } & {
        [key: string]: unknown
      })
    /** @description Position of the newest decision on the log. */
    LogPlace: {
      /** @constant */
      topic: 'tidegate.sessions.v1'
      partition: number
      offset: number
    }
    ManipulationSummary: {
      score: number
      /** @enum {string} */
      verdict: 'none' | 'low' | 'medium' | 'high'
    }
    Mark: {
      /** @constant */
      object: 'mark'
      id: string
      /** @enum {string} */
      label: 'human' | 'bot' | 'fraud' | 'legitimate'
      reason: string | null
      /** @description Number of sessions with this mark. */
      session_count: number
      /** Format: date-time */
      created_at: string
    }
    MarkRequestInput: {
      session_ids?: string[]
      /** @description Visitor whose sessions so far are marked. */
      visitor_id?: string
      /** @description User whose sessions so far are marked. */
      client_user_id?: string
      /** @enum {string} */
      label: 'human' | 'bot' | 'fraud' | 'legitimate'
      /** @description Your reason code: lower-case letters, digits and `_`. */
      reason?: string
    } & (unknown | unknown | unknown)
    /** @enum {string} */
    Phase: 'snapshot' | 'behavioral'
    RelatedSessions: {
      /**
       * @description Parameter of `GET /v1/sessions`.
       * @enum {string}
       */
      field:
        | 'visitor_id'
        | 'client_user_id'
        | 'ip'
        | 'asn'
        | 'page_path'
        | 'attribution'
        | 'agent_provider'
      value: string
      /** @description Sessions with the value, this one included. 1000 means that many or more. */
      sessions: number
      /**
       * Format: date-time
       * @description Start of the counted period.
       */
      since: string
    }
    /** @description Score breakdown of the newest decision. */
    ScoreExplanation: {
      /** @description Steps from 0 to `decision.risk_score`, in order. Null if the scoring model of the decision is unknown, as for decisions of earlier releases. */
      steps: components['schemas']['ScoreStep'][] | null
      /** @description Signals that fired but were not counted, because another signal set the score by itself. */
      without_effect: string[]
      /** @description Descriptions of the signals that fired, from the current release. */
      signals: components['schemas']['ScoreSignal'][]
    }
    ScoreSignal: {
      signal: string
      name: string
      looks_at: string
      /** @description Situations in which the signal also fires for people. */
      false_positives: string
    }
    ScoreStep: {
      /**
       * @description `signal`: a signal that fired. `weak_limit`, `habits_limit`, `trust_limit`: signals of this kind together count at most `bound`. `least`: a negative total was raised to 0. `unconfirmed_cap`: the signals come from a single source. `no_snapshot_floor`: there is no readable snapshot. `signal_floor`: required evidence is missing, see `signal`. `rounding`: rounded to a whole number.
       * @enum {string}
       */
      kind:
        | 'signal'
        | 'weak_limit'
        | 'habits_limit'
        | 'trust_limit'
        | 'least'
        | 'unconfirmed_cap'
        | 'no_snapshot_floor'
        | 'signal_floor'
        | 'rounding'
      signal: string | null
      /** @description Value of the limit, cap or floor; otherwise null. */
      bound: number | null
      /** @description Change from the previous total; negative if it lowers the score. */
      change: number
      /** @description Score after this step. */
      total: number
    }
    ScoredRequest: {
      /**
       * @description Verdict on the request. Never `human`, because a request can't prove a person.
       * @enum {string}
       */
      verdict: 'bot' | 'inconclusive'
      agent: components['schemas']['SessionAgent']
      /** @description Findings about the request, including those that alone are not enough for `bot`. */
      reasons: (
        | 'verified_agent'
        | 'spoofed_agent'
        | 'declared_bot_user_agent'
        | 'signature_agent_header'
        | 'http_client_user_agent'
        | 'headless_user_agent'
        | 'bot_like_user_agent'
        | 'app_library_user_agent'
        | 'user_agent_missing'
        | 'browser_with_tool_handshake'
        | 'hosting_network'
      )[]
      /** @description Checks that were not made. */
      unchecked: (
        | 'published_ranges'
        | 'reverse_dns'
        | 'signature_key'
        | 'signature_replay'
        | 'handshake'
        | 'hosting_network'
      )[]
    }
    /** @description Bot or agent that the session claims to be, and whether the claim was verified. */
    SessionAgent: {
      /** @enum {string} */
      status: 'none' | 'declared' | 'signed' | 'verified' | 'spoofed'
      /** @description Operator, such as `openai`, or the domain that the agent claims. */
      provider: string | null
      /** @description Name of the agent, such as `Googlebot`. */
      product: string | null
      /** @description One of search, ai_assistant, ai_training, monitor, preview, feed, advertising, archive, research, security, seo, webhook, other. */
      purpose: string | null
      /** @description Check that decided the status: signature, reverse_dns or published_ranges. */
      method: string | null
      evidence: {
        catalogue_id: string | null
        /** @description Host of the `Signature-Agent` header, with the port unless it is 443. */
        domain: string | null
        /** @description Thumbprint of the signing key. */
        key_id: string | null
        /** @description Host name of the address, if it resolves back to the address. */
        host_name: string | null
        /** @description Published ranges in which the address was looked up. */
        list: string | null
        /** @description Reason why the signature was not accepted. */
        reason: string | null
        /** @description Time when the key directory or host name was fetched. */
        fetched_at: string | null
      } | null
    }
    SessionAggregates: {
      /** @constant */
      object: 'session_aggregates'
      /**
       * Format: date-time
       * @description Start of the counted period; the first session if the request had no `since`.
       */
      since: string
      /** Format: date-time */
      until: string
      /** @description False if there were too many sessions to read. The counts then cover only the newest ones, from `since` on. */
      is_complete: boolean
      sessions: number
      /** @description Sessions whose decisions expired, not included in `sessions`. */
      ended: number
      /** @description Distinct visitors. */
      visitors: number | null
      /** @description Distinct values of `client_user_id`. */
      users: number | null
      /** @description Reason why `visitors` and `users` are null; otherwise null. */
      distinct_missing: ('over_seven_days' | 'over_a_million_sessions' | 'not_requested') | null
      groups: components['schemas']['SessionGroup'][]
    }
    SessionAttribution: {
      labels: {
        /** @enum {string} */
        kind:
          | 'actor'
          | 'provider'
          | 'tool'
          | 'product'
          | 'organization'
          | 'purpose'
          | 'environment'
          | 'trust'
          | 'evasion'
        value: string
        label: string
        confidence: number
      }[]
      behaviors: {
        /** @enum {string} */
        channel: 'typing' | 'form' | 'mouse' | 'touch' | 'scroll' | 'clipboard'
        value: string
        label: string
        confidence: number
      }[]
    }
    SessionBrowser: {
      name: string | null
      version: string | null
      major_version: string | null
      engine: string
      /** @description App that embeds the web view; null for ordinary browsers. */
      app_name: string | null
    }
    SessionClientTelemetry: {
      navigator: {
        platform: string | null
        vendor: string | null
        hardware_concurrency: number | null
        device_memory: number | null
        max_touch_points: number | null
        pdf_viewer_enabled: boolean | null
        cookie_enabled: boolean | null
        product_sub: string | null
        primary_language: string | null
        languages: string[]
        mime_types_count: number | null
        plugins: string[]
      }
      storage: {
        cookies: boolean | null
        local_storage: boolean | null
        session_storage: boolean | null
        indexed_db: boolean | null
        service_worker: boolean | null
        window_name: boolean | null
      }
      canvas: {
        hash: string | number | null
        geometry_hash: string | number | null
        text_hash: string | number | null
        winding: boolean | null
        noise_detected: boolean | null
        offscreen_consistent: boolean | null
      }
      graphics: {
        webgl: {
          vendor: string | null
          renderer: string | null
          version: string | null
          shading_language_version: string | null
          parameters_hash: string | number | null
          extensions_hash: string | number | null
          extension_parameters_hash: string | number | null
          shader_precision_hash: string | number | null
        }
        webgpu: {
          available: boolean | null
          adapter_vendor: string | null
          adapter_architecture: string | null
          fallback_adapter: boolean | null
          features_hash: string | number | null
          limits_hash: string | number | null
        }
      }
      audio: {
        hash: string | number | null
        sample_rate: number | null
        channel_count: number | null
        voice_count: number | null
        local_voice_count: number | null
        default_voice_lang: string | null
        noise_detected: boolean | null
      }
      fonts: {
        detected_count: number | null
        tested_count: number | null
        enumeration_hash: string | number | null
        metrics_hash: string | number | null
        preferences_hash: string | number | null
        emoji_hash: string | number | null
      }
      media: {
        device_count: number | null
        counts_by_kind: {
          [key: string]: number
        }
        blank_label_count: number | null
        topology_hash: string | number | null
      }
    }
    SessionConnectionFingerprint: {
      ja4: {
        hash: string | null
        profile: string | null
        family: string | null
        product: string | null
        confidence: string | null
        match_source: string | null
        deterministic: boolean | null
        reference: {
          label: string
          source: string
          protocol: string
          tls_version: string
          sni: string
          alpn: string
          cipher_count: {
            min: number
            max: number
          }
          ext_count: {
            min: number
            max: number
          }
          sample_size: number
          verified: boolean | null
        } | null
      }
      http2: {
        akamai_fingerprint: string | null
        profile: string | null
      }
      user_agent_alignment: ('match' | 'mismatch' | 'unknown') | null
    }
    SessionDetail: {
      /** @constant */
      object: 'session'
      id: string
      /** Format: date-time */
      created_at: string
      /** @description Your id of the user, set with `PATCH /v1/sessions/{sessionId}`. */
      client_user_id: string | null
      mark: components['schemas']['SessionMark'] | null
      decision: components['schemas']['SessionDetailDecision']
      highlights: components['schemas']['SessionHighlight'][]
      attribution: components['schemas']['SessionAttribution'] | null
      web_bot_auth: components['schemas']['SessionWebBotAuth'] | null
      agent: components['schemas']['SessionAgent']
      network: components['schemas']['SessionNetwork']
      runtime_integrity: components['schemas']['SessionRuntimeIntegrity']
      visitor_fingerprint: components['schemas']['SessionDetailVisitorFingerprint'] | null
      /** @description Only with `include=identification`. */
      identification?: components['schemas']['VisitorIdentification'] | null
      /** @description Only with `include=score`. */
      score?: components['schemas']['ScoreExplanation']
      /** @description Only with `include=log`. */
      log?: components['schemas']['LogPlace']
      /** @description Events of the session, oldest first. Documents are listed for a day after the session opened; `data_received` is the last data before a decision. Only with `include=timeline`. */
      timeline?: components['schemas']['TimelineEntry'][]
      /** @description Numbers of sessions that share a value with this one: by visitor, user and address within 30 days, by other fields within a day. Only with `include=related`. */
      related?: components['schemas']['RelatedSessions'][]
      connection_fingerprint: components['schemas']['SessionConnectionFingerprint']
      previous_decisions: components['schemas']['SessionDetailDecision'][]
      request: {
        url: string
        referrer: string | null
        user_agent: string
      }
      browser: components['schemas']['SessionBrowser']
      device: components['schemas']['SessionDevice']
      analysis_coverage: {
        browser: boolean
        device: boolean
        network: boolean
        runtime: boolean
        behavioral: boolean
        visitor_identity: boolean
        /** @description True if the app was attested. Null for pages. */
        attestation: boolean | null
      }
      evidence: components['schemas']['SessionEvidence']
      /** @description Versions that made the decision. */
      scoring: components['schemas']['SessionScoring']
      /** @description Numbers of sessions, visitors, addresses and users that share a value with this session, counted up to the decision and including this session. 100 means 100 or more. Null if nothing was counted. */
      repeats: components['schemas']['SessionRepeats'] | null
      signals_fired: {
        signal: string
        role: string
        category: string
        strength: string
        signal_score: number
      }[]
      client_telemetry: components['schemas']['SessionClientTelemetry']
      native_runtime_integrity: components['schemas']['SessionNativeRuntimeIntegrity'] | null
      native_app: components['schemas']['SessionNativeApp'] | null
      native_carrier: components['schemas']['SessionNativeCarrier'] | null
      native_motion_print: components['schemas']['SessionNativeMotionPrint'] | null
      device_identity: components['schemas']['SessionDetailDeviceIdentity'] | null
      install_id: string | null
      behavior: null
    }
    SessionDetailDecision: {
      event_id: string
      /** @enum {string} */
      automation_status: 'automated' | 'human' | 'uncertain'
      risk_score: number
      evaluation_phase: components['schemas']['Phase']
      /** @enum {string} */
      decision_status: 'preliminary' | 'final'
      /** Format: date-time */
      evaluated_at: string
    }
    SessionDetailDeviceIdentity: {
      /** @constant */
      object: 'device_identity'
      id: string
      confidence: number
      /** @enum {string} */
      source: 'attested' | 'anchored' | 'inferred' | 'new'
      /** @enum {string} */
      platform: 'ios' | 'android'
      /** Format: date-time */
      identified_at: string
      lifecycle: {
        /** Format: date-time */
        first_seen_at: string
        /** Format: date-time */
        last_seen_at: string
        seen_count: number
      }
      matched_anchors: string[]
    }
    SessionDetailVisitorFingerprint: {
      /** @constant */
      object: 'visitor_fingerprint'
      id: string
      confidence: number | null
      identified_at: string | null
      /** @description Method and basis of the match to the visitor. */
      resolution: {
        method:
          | (
              | 'continuity'
              | 'fingerprint'
              | 'fingerprint_evolution'
              | 'new'
              | 'native_persistent'
              | 'native_new'
              | 'existing'
              | 'unknown'
            )
          | null
        basis: ('deterministic' | 'probabilistic') | null
      }
      lifecycle: {
        first_seen_at: string | null
        last_seen_at: string | null
        seen_count: number | null
      }
    }
    SessionDevice: {
      form_factor: string
      operating_system: {
        name: string | null
        version: string | null
      }
      architecture: string | null
      screen: {
        size: string | null
        color_depth: number | null
        pixel_ratio: number | null
        orientation_type: string | null
      }
      locale: {
        timezone: string | null
        primary_language: string | null
        languages: string[]
      }
      capabilities: {
        touch: {
          available: boolean | null
          max_touch_points: number | null
        }
        storage: {
          cookies: boolean | null
          local_storage: boolean | null
          indexed_db: boolean | null
          service_worker: boolean | null
          window_name: boolean | null
        }
        webgpu: {
          available: boolean | null
        }
        platform_authenticator: {
          available: boolean | null
          conditional_mediation: boolean | null
        }
        media_devices: {
          available: boolean | null
        }
        speech_synthesis: {
          available: boolean | null
        }
      }
    }
    SessionEvidence: {
      /** @description Sources that were consulted. */
      sources: string[]
      /** @description Members that are `false`, `clean` or empty only because no source was consulted: members of `runtime_integrity` by name, others by path. */
      unchecked: string[]
      /** @description Members that the SDK always sends, but that are absent. */
      missing: string[]
      /** @description Absent parts of the snapshot that this browser can plausibly lack, with the reason. */
      withheld: {
        /** @description Part of the snapshot, such as `canvas`. */
        group: string
        /** @enum {string} */
        reason: 'blocked' | 'unsupported' | 'late'
      }[]
      /** @description Members with a value that no browser has. */
      impossible: string[]
      /** @description Unverified members that the app reported about itself and its device. */
      claimed: string[]
    }
    /** @description Fields for filtering and grouping. Null once the decisions of the session expired. */
    SessionFacts: {
      /** @description Signals that fired. */
      signals: string[]
      /** @description Signal that speaks most for the verdict: of a human the trust signal, otherwise the risk signal, with the most points. Null if none fired. */
      top_signal: string | null
      page_host: string | null
      page_path: string | null
      country: string | null
      asn: number | null
      network_holder: string | null
      network:
        | (
            | 'tor'
            | 'vpn'
            | 'relay'
            | 'residential_proxy'
            | 'proxy'
            | 'callback_proxy'
            | 'hosting'
            | 'other'
            | 'unknown'
          )
        | null
      browser: string | null
      browser_version: string | null
      os: string | null
      form_factor: string | null
      agent_status: ('none' | 'declared' | 'signed' | 'verified' | 'spoofed') | null
      agent_provider: string | null
      agent_product: string | null
      handed_off_at: string | null
    }
    SessionFingerprintCalculatedPayload: {
      /** @constant */
      object: 'session_fingerprint'
      session: {
        id: string
      }
      visitor_fingerprint: {
        id: string
        confidence: number | null
        /** Format: date-time */
        identified_at: string
      }
      request: components['schemas']['WebhookRequestSummary']
      /** Format: date-time */
      calculated_at: string
    }
    SessionFingerprintCalculatedWebhookEvent: components['schemas']['WebhookEventEnvelope'] &
      ({
        /** @constant */
        type: 'session.fingerprint.calculated'
        data: components['schemas']['SessionFingerprintCalculatedPayload']
      } & {
        [key: string]: unknown
      })
    SessionGroup: {
      /** @description Start of the interval; null without intervals. */
      start: string | null
      /**
       * @description `other`: all groups beyond `top`. `ended`: sessions whose decisions expired, so they can no longer be filtered or grouped.
       * @enum {string}
       */
      kind: 'value' | 'other' | 'ended'
      /** @description Values of the group, keyed by field; null if the sessions have no value. Empty for `other` and `ended`. */
      values: {
        [key: string]: string | null
      }
      sessions: number
    }
    SessionHighlight: {
      key: string
      /** @enum {string} */
      effect: 'increases_risk' | 'reduces_risk' | 'context'
      /** @enum {string} */
      importance: 'high' | 'medium' | 'low'
      summary: string
      evidence?: {
        signal: string
        name: string
      }[]
    }
    /** @description Newest mark from `POST /v1/marks`. */
    SessionMark: {
      id: string
      /** @enum {string} */
      label: 'human' | 'bot' | 'fraud' | 'legitimate'
      reason: string | null
      /** Format: date-time */
      marked_at: string
    }
    SessionNativeApp: {
      bundle_id: string
      app_version: string | null
      app_build: string | null
      install_time_epoch_ms: number | null
      provisioning_team: string | null
    }
    SessionNativeCarrier: {
      /** @enum {string} */
      platform: 'ios' | 'android'
      carrier_name: string | null
      country_iso: string | null
      mcc: string | null
      mnc: string | null
      phone_type: string | null
      network_type: string | null
      radio_access: string[]
    }
    SessionNativeMotionPrint: {
      /** @enum {string} */
      platform: 'ios' | 'android'
      sample_count: number
      gyro: {
        bias: number[]
        noise: number[]
      }
      accel: {
        bias: number[]
        noise: number[]
      }
      mag: {
        bias: number[]
        noise: number[]
      } | null
    }
    SessionNativeRuntimeIntegrity: {
      /** @enum {string} */
      platform: 'ios' | 'android'
      jailbreak_or_root: {
        detected: boolean
        signals: string[]
        present_paths?: string[]
        dyld_insert_libraries?: string[]
        verified_boot_state?: string
        magisk_mount_present?: boolean
        su_on_path?: boolean
      }
      hooks: {
        detected: boolean
        frida_ports?: number[]
        frida_thread_names?: string[]
        hooked_symbols?: string[]
        self_hooked_symbols?: string[]
        prologue_anomaly_count?: number
        unexpected_dyld_images?: string[]
        xposed_packages?: string[]
      }
      debugger: {
        attached: boolean
        tracer_pid?: number
        breakpoint_count?: number
        watchpoint_thread_count?: number
      }
      code_signing: {
        invalid: boolean
        code_sign_valid?: boolean
        text_integrity_ok?: boolean
        application_debuggable?: boolean
        dyld_insert_libraries?: string[]
      }
      simulator_or_emulator: {
        detected: boolean
        is_ios_app_on_mac?: boolean
        qemu_files?: string[]
        ro_hardware?: string
        ro_product_model?: string
        simulator_env_keys?: string[]
      }
      hardware_claims_mismatch: {
        detected: boolean
        signals: string[]
      }
      sim_posture: {
        detected: boolean
        signals: string[]
      }
      app_provenance: {
        detected: boolean
        signals: string[]
      }
      debug_posture: {
        detected: boolean
        adb_enabled?: boolean
        developer_options_enabled?: boolean
        app_debuggable?: boolean
        app_profileable?: boolean
        app_test_only?: boolean
        debugger_attached?: boolean
        get_task_allow?: boolean
        embedded_provisioning_profile_present?: boolean
        receipt_is_sandbox?: boolean
        receipt_is_testflight?: boolean
        development_bundle?: boolean
        active_debugger_attached?: boolean
        breakpoint_count?: number
        exception_port_count?: number
        watchpoint_thread_count?: number
        tracer_pid?: number
        direct_syscall_tracer_pid?: number
        risk_signals: string[]
      }
    }
    SessionNetwork: {
      ip_address: string | null
      ip_version: ('ipv4' | 'ipv6') | null
      /** @enum {string} */
      status: 'pending' | 'ready' | 'skipped' | 'error'
      summary: string | null
      location: {
        city: string | null
        region: string | null
        country: string | null
        country_code: string | null
        latitude: number | null
        longitude: number | null
        timezone: string | null
        postal_code: string | null
        accuracy_radius_km: number | null
      } | null
      routing: {
        asn: string | null
        organization: string | null
      }
      anonymity: {
        vpn: boolean
        proxy: boolean
        tor: boolean
        relay: boolean
        hosting: boolean
        residential_proxy: boolean
        callback_proxy: boolean
        provider: string | null
      }
      reputation: {
        listed: boolean
        categories: string[]
        suspicious_network: boolean
      }
      evidence: {
        risk_signals: string[]
        operator_tags: string[]
        client_types: string[]
        client_count: number | null
      }
      evaluated_at: string | null
    }
    SessionRepeatCounts: {
      five_minutes: number
      hour: number
      day: number
    }
    SessionRepeats: {
      address_sessions: components['schemas']['SessionRepeatCounts']
      network_sessions: components['schemas']['SessionRepeatCounts']
      visitor_sessions: components['schemas']['SessionRepeatCounts']
      snapshot_sessions: components['schemas']['SessionRepeatCounts']
      behavior_sessions: components['schemas']['SessionRepeatCounts']
      address_visitors: components['schemas']['SessionRepeatCounts']
      visitor_addresses: components['schemas']['SessionRepeatCounts']
      visitor_users: components['schemas']['SessionRepeatCounts']
      user_visitors: components['schemas']['SessionRepeatCounts']
    }
    SessionResultPersistedPayload: {
      /** @constant */
      object: 'session_result'
      session: {
        id: string
      }
      /** @description Decision. Its `id` is the `event_id` in REST responses and sealed tokens. */
      event: {
        id: string
        scoring_event_id: string
        phase: components['schemas']['Phase']
        is_provisional: boolean
        /** Format: date-time */
        persisted_at: string
      }
      decision: {
        verdict: components['schemas']['Verdict']
        risk_score: number
        /** @description `risk_score` divided by 100. */
        score: number
        manipulation: components['schemas']['ManipulationSummary'] | null
      }
      visitor_fingerprint: {
        id: string
      } | null
      request: components['schemas']['WebhookRequestSummary']
      score_breakdown: {
        categories: {
          [key: string]: number
        }
      } & {
        [key: string]: unknown
      }
      signals: ({
        id: string
        category: string
        confidence: string
        score: number
        role: string
      } & {
        [key: string]: unknown
      })[]
      attribution: {
        /** @description Attribution of the bot; null unless the verdict is `bot`. */
        bot: components['schemas']['SessionAttribution'] | null
        /** @description Bot or agent that the session claims to be, as verified for this decision. */
        agent: components['schemas']['SessionAgent']
      } & {
        [key: string]: unknown
      }
    }
    SessionResultPersistedWebhookEvent: components['schemas']['WebhookEventEnvelope'] &
      ({
        /** @constant */
        type: 'session.result.persisted'
        data: components['schemas']['SessionResultPersistedPayload']
      } & {
        [key: string]: unknown
      })
    SessionRuntimeIntegrity: {
      /** @enum {string} */
      tampering_detected: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      developer_tools_detected: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      emulation_suspected: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      virtualization_suspected: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      privacy_hardening_suspected: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      identity_spoofing_suspected: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      replay_suspected: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      outdated_environment: 'clean' | 'notice' | 'elevated' | 'high_risk'
      /** @enum {string} */
      verified_bot_identity: 'clean' | 'notice' | 'elevated' | 'high_risk'
    }
    SessionScoring: {
      /** @description Version of the signals. */
      version: string
      /** @description Id of the scoring model, as in `GET /v1/scoring/model`. */
      model: string
    }
    SessionSummary: {
      /** @constant */
      object: 'session'
      id: string
      /** Format: date-time */
      created_at: string
      /** @description Your id of the user, set with `PATCH /v1/sessions/{sessionId}`. */
      client_user_id: string | null
      latest_decision: components['schemas']['Decision']
      visitor_fingerprint: components['schemas']['VisitorFingerprintLink'] | null
      mark: components['schemas']['SessionMark'] | null
      facts: components['schemas']['SessionFacts'] | null
    }
    /** @description Web Bot Auth signature of the request. Null if it had no signature headers. */
    SessionWebBotAuth: {
      /** @enum {string} */
      status: 'verified' | 'invalid' | 'unknown_key' | 'absent'
      /** @description Host of the `Signature-Agent` header, with the port unless it is 443. */
      domain: string | null
    }
    TimelineEntry: {
      /** @enum {string} */
      kind: 'opened' | 'document_opened' | 'data_received' | 'decided' | 'user_changed' | 'marked'
      /** Format: date-time */
      at: string
      /** @description Decision of a `decided` entry; otherwise null. */
      event_id: string | null
      /** @description URL of `document_opened`, reason of `decided`, `client_user_id` of `user_changed` (null = removed), label of `marked`; otherwise null. */
      value: string | null
    }
    /** @enum {string} */
    Verdict: 'bot' | 'human' | 'inconclusive'
    VisitorFingerprintDetail: {
      /** @constant */
      object: 'visitor_fingerprint'
      id: string
      lifecycle: {
        /** Format: date-time */
        first_seen_at: string
        /** Format: date-time */
        last_seen_at: string
        /** @description Number of distinct sessions. */
        seen_count: number
        /**
         * @description Always this value: visitors have no fixed expiry.
         * @constant
         */
        expires_at: '9999-12-31T00:00:00.000Z'
      }
      latest_request: {
        user_agent: string
        ip_address: string
      }
      storage: {
        cookies: boolean
        local_storage: boolean
        indexed_db: boolean
        service_worker: boolean
        window_name: boolean
      }
      anchors: {
        webgl_hash: string | null
        parameters_hash: string | null
        audio_hash: string | null
      }
      components: {
        vector: number[]
      }
      /** @description Explanation of the match of the newest session. Only with `include=identification`. */
      identification?: components['schemas']['VisitorIdentification'] | null
      activity: {
        sessions: {
          session_id: string
          decision: components['schemas']['Decision']
          request: {
            url: string
            user_agent: string
            ip_address: string
            screen_size: string | null
            is_touch_capable: boolean | null
          }
          score_breakdown: {
            categories: {
              [key: string]: number
            }
          }
        }[]
      }
    }
    VisitorFingerprintLink: {
      /** @constant */
      object: 'visitor_fingerprint'
      id: string
      confidence: number | null
      identified_at: string | null
      /** @description Method and basis of the match to the visitor. Only with `include=resolution`. */
      resolution?: {
        method:
          | (
              | 'continuity'
              | 'fingerprint'
              | 'fingerprint_evolution'
              | 'new'
              | 'native_persistent'
              | 'native_new'
              | 'existing'
              | 'unknown'
            )
          | null
        basis: ('deterministic' | 'probabilistic') | null
      }
    }
    VisitorFingerprintSummary: {
      /** @constant */
      object: 'visitor_fingerprint'
      id: string
      lifecycle: {
        /** Format: date-time */
        first_seen_at: string
        /** Format: date-time */
        last_seen_at: string
        /** @description Number of distinct sessions. */
        seen_count: number
        /**
         * @description Always this value: visitors have no fixed expiry.
         * @constant
         */
        expires_at: '9999-12-31T00:00:00.000Z'
      }
      latest_request: {
        user_agent: string
        ip_address: string
      }
      storage: {
        cookies: boolean
        local_storage: boolean
        indexed_db: boolean
        service_worker: boolean
        window_name: boolean
      }
      anchors: {
        webgl_hash: string | null
        parameters_hash: string | null
        audio_hash: string | null
      }
      /** @description Newest session of the visitor; null once retention deleted it. Only with `include=latest_session`. */
      latest_session?: {
        id: string
        verdict: components['schemas']['Verdict']
        risk_score: number
        client_user_id: string | null
        country: string | null
        browser: string | null
        os: string | null
      } | null
    }
    /** @description Explanation of the match between session and visitor. Computed for each request from what is now known about earlier sessions. Null if the session has no visitor. */
    VisitorIdentification: {
      session_id: string
      /**
       * @description `kept_id`: id stored by the browser. `install_id`: install id of the app. `look`: traits of the device. `correction`: split or merge. `doubt`: new visitor, because no candidate was a confident match. `nobody_before`: new visitor, because there was no candidate.
       * @enum {string}
       */
      decided_by: 'kept_id' | 'install_id' | 'look' | 'correction' | 'doubt' | 'nobody_before'
      /** @description Minimum bits for a match. Null if the session is not matched by traits. */
      bits_needed: number | null
      /** @description Number of visitors compared for `visitors_with_it`: the most recently seen, at most 1,000. Up to a minute old. */
      of_visitors: number
      /** @description Visitor that the session was matched to; null if the session began a new visitor. */
      chosen: components['schemas']['IdentificationCandidate'] | null
      /** @description Most likely other candidate. */
      next: components['schemas']['IdentificationNext'] | null
    }
    WebhookEventEnvelope: {
      /** @description Event id, the same in every attempt and for every endpoint. */
      id: string
      /** @constant */
      object: 'webhook_event'
      /** @enum {string} */
      type:
        | 'session.fingerprint.calculated'
        | 'session.result.persisted'
        | 'gate.session.approved'
        | 'key.expiring'
        | 'endpoint.failing'
        | 'alert.opened'
        | 'alert.closed'
        | 'webhook.test'
      /**
       * Format: date-time
       * @description Time of the event, not of the delivery.
       */
      created: string
      data:
        | components['schemas']['SessionFingerprintCalculatedPayload']
        | components['schemas']['SessionResultPersistedPayload']
        | components['schemas']['GateApprovedWebhookPayload']
        | components['schemas']['WebhookTestEventPayload']
        | components['schemas']['KeyExpiringPayload']
        | components['schemas']['EndpointFailingPayload']
        | components['schemas']['AlertPayload']
    }
    WebhookRequestSummary: {
      url: string | null
      user_agent: string | null
      ip_address: string | null
      screen_size: string | null
      /** @description Absent if unknown. */
      is_touch_capable?: boolean
      /** @description Name of the operating system. */
      platform: string | null
      /**
       * Format: date-time
       * @description Time when the session began.
       */
      first_seen: string
      /**
       * Format: date-time
       * @description Time of the decision.
       */
      risk_time: string
    }
    WebhookTestEventPayload: {
      /** @constant */
      object: 'webhook_test'
      endpoint: {
        id: string
      }
    } & {
      [key: string]: unknown
    }
    WebhookTestWebhookEvent: components['schemas']['WebhookEventEnvelope'] &
      ({
        /** @constant */
        type: 'webhook.test'
        data: components['schemas']['WebhookTestEventPayload']
      } & {
        [key: string]: unknown
      })
  }
  responses: never
  parameters: never
  requestBodies: never
  headers: never
  pathItems: never
}
export type AlertClosedWebhookEvent = components['schemas']['AlertClosedWebhookEvent']
export type AlertOpenedWebhookEvent = components['schemas']['AlertOpenedWebhookEvent']
export type AlertPayload = components['schemas']['AlertPayload']
export type ApiErrorDetails = components['schemas']['ApiErrorDetails']
export type ApiFieldIssue = components['schemas']['ApiFieldIssue']
export type Decision = components['schemas']['Decision']
export type EndpointFailingPayload = components['schemas']['EndpointFailingPayload']
export type EndpointFailingWebhookEvent = components['schemas']['EndpointFailingWebhookEvent']
export type GateApprovedWebhookPayload = components['schemas']['GateApprovedWebhookPayload']
export type GateDeliveryRequest = components['schemas']['GateDeliveryRequest']
export type GateSessionApprovedWebhookEvent =
  components['schemas']['GateSessionApprovedWebhookEvent']
export type IdentificationCandidate = components['schemas']['IdentificationCandidate']
export type IdentificationComponent = components['schemas']['IdentificationComponent']
export type IdentificationNext = components['schemas']['IdentificationNext']
export type KeyExpiringPayload = components['schemas']['KeyExpiringPayload']
export type KeyExpiringWebhookEvent = components['schemas']['KeyExpiringWebhookEvent']
export type LogPlace = components['schemas']['LogPlace']
export type ManipulationSummary = components['schemas']['ManipulationSummary']
export type Mark = components['schemas']['Mark']
export type MarkRequestInput = components['schemas']['MarkRequestInput']
export type Phase = components['schemas']['Phase']
export type RelatedSessions = components['schemas']['RelatedSessions']
export type ScoreExplanation = components['schemas']['ScoreExplanation']
export type ScoreSignal = components['schemas']['ScoreSignal']
export type ScoreStep = components['schemas']['ScoreStep']
export type ScoredRequest = components['schemas']['ScoredRequest']
export type SessionAgent = components['schemas']['SessionAgent']
export type SessionAggregates = components['schemas']['SessionAggregates']
export type SessionAttribution = components['schemas']['SessionAttribution']
export type SessionBrowser = components['schemas']['SessionBrowser']
export type SessionClientTelemetry = components['schemas']['SessionClientTelemetry']
export type SessionConnectionFingerprint = components['schemas']['SessionConnectionFingerprint']
export type SessionDetail = components['schemas']['SessionDetail']
export type SessionDetailDecision = components['schemas']['SessionDetailDecision']
export type SessionDetailDeviceIdentity = components['schemas']['SessionDetailDeviceIdentity']
export type SessionDetailVisitorFingerprint =
  components['schemas']['SessionDetailVisitorFingerprint']
export type SessionDevice = components['schemas']['SessionDevice']
export type SessionEvidence = components['schemas']['SessionEvidence']
export type SessionFacts = components['schemas']['SessionFacts']
export type SessionFingerprintCalculatedPayload =
  components['schemas']['SessionFingerprintCalculatedPayload']
export type SessionFingerprintCalculatedWebhookEvent =
  components['schemas']['SessionFingerprintCalculatedWebhookEvent']
export type SessionGroup = components['schemas']['SessionGroup']
export type SessionHighlight = components['schemas']['SessionHighlight']
export type SessionMark = components['schemas']['SessionMark']
export type SessionNativeApp = components['schemas']['SessionNativeApp']
export type SessionNativeCarrier = components['schemas']['SessionNativeCarrier']
export type SessionNativeMotionPrint = components['schemas']['SessionNativeMotionPrint']
export type SessionNativeRuntimeIntegrity = components['schemas']['SessionNativeRuntimeIntegrity']
export type SessionNetwork = components['schemas']['SessionNetwork']
export type SessionRepeatCounts = components['schemas']['SessionRepeatCounts']
export type SessionRepeats = components['schemas']['SessionRepeats']
export type SessionResultPersistedPayload = components['schemas']['SessionResultPersistedPayload']
export type SessionResultPersistedWebhookEvent =
  components['schemas']['SessionResultPersistedWebhookEvent']
export type SessionRuntimeIntegrity = components['schemas']['SessionRuntimeIntegrity']
export type SessionScoring = components['schemas']['SessionScoring']
export type SessionSummary = components['schemas']['SessionSummary']
export type SessionWebBotAuth = components['schemas']['SessionWebBotAuth']
export type TimelineEntry = components['schemas']['TimelineEntry']
export type Verdict = components['schemas']['Verdict']
export type VisitorFingerprintDetail = components['schemas']['VisitorFingerprintDetail']
export type VisitorFingerprintLink = components['schemas']['VisitorFingerprintLink']
export type VisitorFingerprintSummary = components['schemas']['VisitorFingerprintSummary']
export type VisitorIdentification = components['schemas']['VisitorIdentification']
export type WebhookEventEnvelope = components['schemas']['WebhookEventEnvelope']
export type WebhookRequestSummary = components['schemas']['WebhookRequestSummary']
export type WebhookTestEventPayload = components['schemas']['WebhookTestEventPayload']
export type WebhookTestWebhookEvent = components['schemas']['WebhookTestWebhookEvent']
export interface operations {
  listVisitorFingerprints: {
    parameters: {
      query?: {
        limit?: number
        /** @description `next_cursor` of the previous page. Empty: the first page. */
        cursor?: string
        /** @description Text to find in visitor id, user agent and IP address. A complete `vid_` id matches exactly. */
        search?: string
        /** @description `seen_count`: most sessions first; `first_seen`: newest visitor first. Default: most recently seen first. */
        sort?: 'seen_count' | 'first_seen'
        /** @description Additional members: `latest_session` (newest session of each visitor). Unknown values are ignored. */
        include?: string | string[]
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: never
  }
  getVisitorFingerprint: {
    parameters: {
      query?: {
        /** @description Additional members: `identification` (how the newest session was matched to the visitor). Unknown values are ignored. */
        include?: string | string[]
      }
      header?: never
      path: {
        visitorId: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: never
  }
  markSessions: {
    parameters: {
      query?: never
      header?: {
        /** @description Makes the request safe to retry for 24 hours: a repeat with the same key and body returns the first response. The body is identical, so its `meta.request_id` is that of the first request; the header `X-Request-Id` is that of the repeat. */
        'Idempotency-Key'?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': components['schemas']['MarkRequestInput']
      }
    }
    responses: never
  }
  deleteMark: {
    parameters: {
      query?: never
      header?: never
      path: {
        markId: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: never
  }
  scoreRequests: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          requests: {
            method: string
            /** @enum {string} */
            scheme: 'http' | 'https'
            /** @description Host, with the port unless it is the default. Must be a host of your organization. */
            authority: string
            /** @description Path and query as received. */
            path: string
            /** @description Header names and values in the order received, at most 16384 characters in total. Leave out cookies and credentials. */
            headers: [string, string][]
            /** @description IP address that connected to your edge. */
            ip: string | unknown | unknown
            ja4?: string | null
          }[]
        }
      }
    }
    responses: never
  }
  listSessions: {
    parameters: {
      query?: {
        limit?: number
        /** @description `next_cursor` of the previous page. Empty: the first page. */
        cursor?: string
        /** @description Earliest time of the newest decision, inclusive. */
        since?: string[]
        /** @description Latest time of the newest decision, exclusive. */
        until?: string[]
        score_min?: number[]
        score_max?: number[]
        handed_off?: ('true' | 'false')[]
        verdict?: ('bot' | 'human' | 'inconclusive')[]
        /** @description Signal that fired, such as `webdriver_detected`. */
        signal?: string[]
        /** @description Attribution by value, or by `kind:value` such as `tool:playwright`. */
        attribution?: string[]
        agent_status?: ('none' | 'declared' | 'signed' | 'verified' | 'spoofed')[]
        /** @description Operator of the agent, such as `openai`. Case is ignored. */
        agent_provider?: string[]
        country?: string[]
        /** @description Autonomous system number: `64500` or `AS64500`. */
        asn?: string[]
        network?: (
          | 'tor'
          | 'vpn'
          | 'relay'
          | 'residential_proxy'
          | 'proxy'
          | 'callback_proxy'
          | 'hosting'
          | 'other'
          | 'unknown'
        )[]
        /** @description IP address or CIDR range, such as `203.0.113.0/24`. */
        ip?: string[]
        page_host?: string[]
        /** @description Path of the newest page, such as `/login`, without query. */
        page_path?: string[]
        visitor_id?: string[]
        client_user_id?: string[]
        /** @description Id of the publishable key that opened the session. */
        key_id?: string[]
        /** @description Browser name without the vendor, such as `chrome`. ASCII case is ignored. */
        browser?: string[]
        /** @description Name of the operating system. ASCII case is ignored. */
        os?: string[]
        /** @description Label of the newest mark; `none` for sessions without a mark. */
        mark?: ('human' | 'bot' | 'fraud' | 'legitimate' | 'none')[]
        /** @description Values to exclude. Sessions without a value also match. */
        'verdict[not]'?: ('bot' | 'human' | 'inconclusive')[]
        /** @description Values to exclude. Sessions without a value also match. */
        'signal[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'attribution[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'agent_status[not]'?: ('none' | 'declared' | 'signed' | 'verified' | 'spoofed')[]
        /** @description Values to exclude. Sessions without a value also match. */
        'agent_provider[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'country[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'asn[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'network[not]'?: (
          | 'tor'
          | 'vpn'
          | 'relay'
          | 'residential_proxy'
          | 'proxy'
          | 'callback_proxy'
          | 'hosting'
          | 'other'
          | 'unknown'
        )[]
        /** @description Values to exclude. Sessions without a value also match. */
        'ip[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'page_host[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'page_path[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'visitor_id[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'client_user_id[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'key_id[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'browser[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'os[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'mark[not]'?: ('human' | 'bot' | 'fraud' | 'legitimate' | 'none')[]
        /** @description Fields that must have no value. Combined with values of the same field, matches either one. */
        without?: (
          | 'signal'
          | 'attribution'
          | 'agent_status'
          | 'agent_provider'
          | 'country'
          | 'asn'
          | 'network'
          | 'ip'
          | 'page_host'
          | 'page_path'
          | 'visitor_id'
          | 'client_user_id'
          | 'key_id'
          | 'browser'
          | 'os'
        )[]
        /** @description Fields that must have a value. */
        'without[not]'?: (
          | 'signal'
          | 'attribution'
          | 'agent_status'
          | 'agent_provider'
          | 'country'
          | 'asn'
          | 'network'
          | 'ip'
          | 'page_host'
          | 'page_path'
          | 'visitor_id'
          | 'client_user_id'
          | 'key_id'
          | 'browser'
          | 'os'
        )[]
        /** @description Text to find in ids, `client_user_id`, page URL (encoded or decoded), user agent and IP address. A complete `sid_`, `evt_` or `vid_` id (or a legacy 32-digit hexadecimal id) matches exactly, ignoring case. Part of an id is looked for among the first 10,000 sessions of the page. */
        search?: string
        /** @description `evaluated_at` (default): by the time of the newest decision. `risk_score`: by its score, then by session id; not with `search`, and only if the period has at most 500000 sessions. */
        sort?: 'evaluated_at' | 'risk_score'
        /** @description Default: `desc`. */
        order?: 'asc' | 'desc'
        /** @description Additional members: `resolution` (how each session was matched to its visitor). Unknown values are ignored. */
        include?: string | string[]
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: never
  }
  countSessions: {
    parameters: {
      query: {
        /** @description Earliest time of the newest decision, inclusive. */
        since?: string[]
        /** @description Latest time of the newest decision, exclusive. */
        until?: string[]
        score_min?: number[]
        score_max?: number[]
        handed_off?: ('true' | 'false')[]
        verdict?: ('bot' | 'human' | 'inconclusive')[]
        /** @description Signal that fired, such as `webdriver_detected`. */
        signal?: string[]
        /** @description Attribution by value, or by `kind:value` such as `tool:playwright`. */
        attribution?: string[]
        agent_status?: ('none' | 'declared' | 'signed' | 'verified' | 'spoofed')[]
        /** @description Operator of the agent, such as `openai`. Case is ignored. */
        agent_provider?: string[]
        country?: string[]
        /** @description Autonomous system number: `64500` or `AS64500`. */
        asn?: string[]
        network?: (
          | 'tor'
          | 'vpn'
          | 'relay'
          | 'residential_proxy'
          | 'proxy'
          | 'callback_proxy'
          | 'hosting'
          | 'other'
          | 'unknown'
        )[]
        /** @description IP address or CIDR range, such as `203.0.113.0/24`. */
        ip?: string[]
        page_host?: string[]
        /** @description Path of the newest page, such as `/login`, without query. */
        page_path?: string[]
        visitor_id?: string[]
        client_user_id?: string[]
        /** @description Id of the publishable key that opened the session. */
        key_id?: string[]
        /** @description Browser name without the vendor, such as `chrome`. ASCII case is ignored. */
        browser?: string[]
        /** @description Name of the operating system. ASCII case is ignored. */
        os?: string[]
        /** @description Label of the newest mark; `none` for sessions without a mark. */
        mark?: ('human' | 'bot' | 'fraud' | 'legitimate' | 'none')[]
        /** @description Values to exclude. Sessions without a value also match. */
        'verdict[not]'?: ('bot' | 'human' | 'inconclusive')[]
        /** @description Values to exclude. Sessions without a value also match. */
        'signal[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'attribution[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'agent_status[not]'?: ('none' | 'declared' | 'signed' | 'verified' | 'spoofed')[]
        /** @description Values to exclude. Sessions without a value also match. */
        'agent_provider[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'country[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'asn[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'network[not]'?: (
          | 'tor'
          | 'vpn'
          | 'relay'
          | 'residential_proxy'
          | 'proxy'
          | 'callback_proxy'
          | 'hosting'
          | 'other'
          | 'unknown'
        )[]
        /** @description Values to exclude. Sessions without a value also match. */
        'ip[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'page_host[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'page_path[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'visitor_id[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'client_user_id[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'key_id[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'browser[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'os[not]'?: string[]
        /** @description Values to exclude. Sessions without a value also match. */
        'mark[not]'?: ('human' | 'bot' | 'fraud' | 'legitimate' | 'none')[]
        /** @description Fields that must have no value. Combined with values of the same field, matches either one. */
        without?: (
          | 'signal'
          | 'attribution'
          | 'agent_status'
          | 'agent_provider'
          | 'country'
          | 'asn'
          | 'network'
          | 'ip'
          | 'page_host'
          | 'page_path'
          | 'visitor_id'
          | 'client_user_id'
          | 'key_id'
          | 'browser'
          | 'os'
        )[]
        /** @description Fields that must have a value. */
        'without[not]'?: (
          | 'signal'
          | 'attribution'
          | 'agent_status'
          | 'agent_provider'
          | 'country'
          | 'asn'
          | 'network'
          | 'ip'
          | 'page_host'
          | 'page_path'
          | 'visitor_id'
          | 'client_user_id'
          | 'key_id'
          | 'browser'
          | 'os'
        )[]
        /** @description Length of the intervals, in UTC. At most 1500 intervals between `since` and `until`. */
        interval?: 'none' | 'minute' | 'hour' | 'day'
        /** @description Up to two fields to group by, separated by a comma: `country,verdict`. A session is counted once for each of its signals and attributions. */
        group_by: (
          | 'verdict'
          | 'signal'
          | 'attribution'
          | 'country'
          | 'asn'
          | 'network'
          | 'page_host'
          | 'page_path'
          | 'key_id'
          | 'browser'
          | 'os'
          | 'handed_off'
          | 'mark'
          | 'agent_status'
          | 'agent_provider'
        )[]
        /** @description Number of largest groups to return. The rest is returned as `other`. */
        top?: number
        /** @description `false` leaves out `visitors` and `users`, which makes a large count faster. */
        distinct?: 'true' | 'false'
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: never
  }
  getSession: {
    parameters: {
      query?: {
        /** @description Additional members: `identification` (how the session was matched to its visitor), `score` (score breakdown), `log` (position of the decision on the log), `timeline` (what happened, in order), `related` (counts of sessions that share a value). Unknown values are ignored. */
        include?: string | string[]
      }
      header?: never
      path: {
        sessionId: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: never
  }
  updateSession: {
    parameters: {
      query?: never
      header?: never
      path: {
        sessionId: string
      }
      cookie?: never
    }
    requestBody: {
      content: {
        'application/json': {
          client_user_id: string | null
        }
      }
    }
    responses: never
  }
}
